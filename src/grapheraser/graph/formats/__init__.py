"""A graph from other formats, and back."""
