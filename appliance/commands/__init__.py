"""The `venuebox` commands that do not run the server."""
