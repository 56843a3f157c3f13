"""The portal: web pages for the venue's staff."""
