"""The partner interface over HTTP (interface, sections 2 to 8)."""
