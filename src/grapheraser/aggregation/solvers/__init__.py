"""Convex problems that aggregations solve."""
