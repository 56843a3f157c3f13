"""The box: reservations, door, venue, staff, webhooks, email, backups and maintenance."""
