"""Readers: scanners that are attached to a computer (docs/guide/scanners.md)."""
