"""Pages for guests: access page, claim page, my reservations, booking page."""
