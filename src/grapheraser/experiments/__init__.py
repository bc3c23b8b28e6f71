"""The paper's evaluation: every table and figure, from cells that can be resumed."""
