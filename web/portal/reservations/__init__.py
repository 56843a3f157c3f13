"""Reservations: each one with its history, and what staff do with it."""
