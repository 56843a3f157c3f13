"""Reservations: requests, availability, creation, changes, payments, emails and search."""
