"""Emails to guests: rendering, SMTP, and the worker that sends queued emails."""
