"""The queue of requests: accepted, claimed, carried out step by step, answered."""
