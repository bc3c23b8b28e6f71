"""The pages of a graph: how they are divided, packed, shared and kept in files."""
