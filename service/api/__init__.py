"""The HTTP API: endpoints parse, call and render; the work is done elsewhere."""
