"""The venue: its rules, its rows, its deliveries and its upkeep."""
