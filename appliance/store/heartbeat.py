"""The row of `heartbeat`: when this database was last proved writable."""

from appliance.store.connection import Reader


def find_heartbeat(reader: Reader) -> int | None:
    """When it last beat, in ms since 1970."""
    return reader.one(int, "SELECT at FROM heartbeat WHERE id = 1")
