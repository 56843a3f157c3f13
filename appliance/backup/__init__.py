"""Backups: one sealed file for the whole box, proven before it counts, and the way back."""
