"""Reservations: requests, availability, rows, and every change to one."""
