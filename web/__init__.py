"""The web server with the partner API, guest pages and portal, and the command line."""
