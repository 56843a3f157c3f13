"""The command-line commands that work without the server."""
