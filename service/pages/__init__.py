"""Web pages for people: static files that show what /v1 says."""
