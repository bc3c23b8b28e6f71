"""Requests to forget, changes to make, and what they merge into."""
