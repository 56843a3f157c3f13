"""`venuebox serve --demo`: a ready-made venue that a stranger can try in a minute."""
