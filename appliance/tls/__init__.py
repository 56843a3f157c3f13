"""The box's certificates: an authority of its own, what it signs, and one brought from outside."""
