"""The web server: partner API, guest pages and portal. Also the command line."""
