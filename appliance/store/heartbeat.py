"""The row of `heartbeat`: when this database was last proved writable."""

from appliance.store.connection import Reader, Transaction


def set_heartbeat(tx: Transaction) -> None:
    """Write the present time."""
    sql = """INSERT INTO heartbeat (id, at) VALUES (1, :now)
             ON CONFLICT (id) DO UPDATE SET at = :now"""
    tx.execute(sql, {"now": tx.now})


def find_heartbeat(reader: Reader) -> int | None:
    """When it last beat, in ms since 1970."""
    found: int | None = reader.value("SELECT at FROM heartbeat WHERE id = 1")
    return found
