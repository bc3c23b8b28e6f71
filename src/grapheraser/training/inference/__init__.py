"""Posteriors of trained shard models."""
