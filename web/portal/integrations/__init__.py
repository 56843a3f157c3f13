"""Integrations and API: partners' keys, webhook endpoints, what was sent and how it went."""
