"""The box's TLS certificates, i.e. its own authority's and an imported certificate."""
