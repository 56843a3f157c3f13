"""Tonight: the evening board."""
