"""The box's certificates: its own authority, and an imported certificate."""
