"""What the staff of the house see."""
