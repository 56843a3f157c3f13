"""Readers: scanners that are attached to a computer, not pages of a phone (door.md)."""
