"""What the HTTP faces share: JSON, request context, CSRF, client address, rate limits."""
