"""The faces of the box, and its composition root."""
