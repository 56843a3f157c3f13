"""The mirror: a copy of the live environment in a PostgreSQL database that many boxes share."""
