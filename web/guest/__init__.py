"""The pages for guests: booking, access, claiming, cancellation and "my reservations"."""
