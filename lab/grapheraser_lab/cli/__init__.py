"""Verbs that the laboratory plugs into the command line."""
