"""The box's TLS certificates: signed by its own authority, imported, or obtained by ACME."""
