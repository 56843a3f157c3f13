"""Webhooks: endpoints, deliveries, the dispatcher, retries and the URL policy."""
