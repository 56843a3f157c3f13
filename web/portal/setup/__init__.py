"""The first start: from an empty directory to a venue that takes reservations."""
