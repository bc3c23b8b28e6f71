"""HTML pages that need nothing from anywhere."""
