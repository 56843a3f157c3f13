"""The partner API over HTTP (interface, sections 2 to 8)."""
