"""Create, verify and restore backups: encrypted files with all of the box's data."""
