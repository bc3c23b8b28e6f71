"""The paper's evaluation: every table and figure, and what the paper says of it."""
