"""Parts that every experiment shares: cells, their runner, options, reports."""
