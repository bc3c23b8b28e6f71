// The page of requests: see templates/requests.html.j2.
