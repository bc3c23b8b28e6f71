// The page of audit: see templates/audit.html.j2.
