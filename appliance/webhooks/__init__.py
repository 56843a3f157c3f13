"""Webhooks: endpoints, deliveries, the dispatcher, retries, the URL policy."""
