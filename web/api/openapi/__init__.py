"""The partner interface, described for programs and for people (OpenAPI 3.1)."""
