"""HTTP: partner API, guest pages, portal, command line; and the composition root."""
