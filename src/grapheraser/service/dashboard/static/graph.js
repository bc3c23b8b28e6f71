// The page of graph: see templates/graph.html.j2.
