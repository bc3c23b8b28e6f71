"""Facts: heads, relations and tails, judged by counted rules."""
