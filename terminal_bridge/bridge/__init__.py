"""`venuebox bridge`: readers at another door, for a box elsewhere in the house."""
