// The page of overview: see templates/overview.html.j2.
