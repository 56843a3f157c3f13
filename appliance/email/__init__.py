"""Emails to guests: rendering, SMTP, the worker that sends them."""
