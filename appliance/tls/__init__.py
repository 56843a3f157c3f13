"""The box's TLS certificates: those of its own authority, and an imported certificate."""
