"""``python -m grapheraser``."""

from grapheraser.cli import main

main()
