"""Backups: encrypted files with all data of the box, their verification, and restore."""
