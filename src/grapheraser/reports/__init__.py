"""Everything that a person looks at: pages, figures, tables."""
