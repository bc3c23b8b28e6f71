"""The published version of a run, and what is measured, drawn and searched of it."""
