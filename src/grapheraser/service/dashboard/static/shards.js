// The page of shards: see templates/shards.html.j2.
