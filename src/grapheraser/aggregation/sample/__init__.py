"""The sampled training nodes that an aggregation learns from."""
