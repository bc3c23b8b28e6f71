"""The closed-form expert on the whole training graph."""
