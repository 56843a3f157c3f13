"""The partner API (interface, sections 2 to 8)."""
