"""The erasure service: a queue that loses nothing, a worker, and what the API serves."""
