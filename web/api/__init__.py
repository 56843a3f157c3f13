"""The partner interface over HTTP: contract sections 2 to 8."""
