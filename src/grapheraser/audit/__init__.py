"""The audit: attack a run, measure what leaks, and search for what should be gone."""
