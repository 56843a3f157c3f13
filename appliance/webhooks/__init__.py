"""Deliveries to partners: dispatcher, event body, signature, egress guard."""
