"""Beat: prove that this database can be written, by writing the time into its one row."""

from appliance.store.connection import Transaction


def beat(tx: Transaction) -> None:
    """Durable like every other change, so that it fails where a booking would."""
    sql = "INSERT INTO heartbeat (id, at) VALUES (1, :now) ON CONFLICT (id) DO UPDATE SET at = :now"
    tx.execute(sql, {"now": tx.now})
