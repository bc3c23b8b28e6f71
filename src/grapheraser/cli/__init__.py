"""The command line: one thin module per verb."""

from grapheraser.cli.app import main

__all__ = ["main"]
