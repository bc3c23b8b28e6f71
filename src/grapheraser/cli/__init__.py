"""The command line: thin modules, each for verbs that belong together."""

from grapheraser.cli.app import main

__all__ = ["main"]
