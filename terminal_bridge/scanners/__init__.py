"""Scanners attached to a computer or the network (docs/guide/scanners.md)."""
