"""The door: scan in, verdict out."""
