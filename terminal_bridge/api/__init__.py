"""The door protocol over HTTP (docs/guide/door-protocol.md)."""
