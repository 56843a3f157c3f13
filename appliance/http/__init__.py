"""Shared HTTP code: JSON, request context, CSRF, client address, rate limits."""
