"""Beat: prove that this database can be written, by writing the time into its one row."""

from appliance.store.connection import Transaction
from appliance.store.heartbeat import set_heartbeat


def beat(tx: Transaction) -> None:
    """Durable like every other change, so that it fails where a booking would."""
    set_heartbeat(tx)
