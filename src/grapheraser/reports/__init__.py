"""Whatever a person looks at: pages, figures, tables."""
