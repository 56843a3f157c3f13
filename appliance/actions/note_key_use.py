"""Note that a key is in use: when, and how often since that was written last."""

from collections.abc import Sequence

from appliance.store.connection import Transaction
from appliance.store.key_use import add_requests
from appliance.store.keys import touch_key


def note_key_use(
    tx: Transaction, key_id: str, counted: Sequence[tuple[int, int]], *, just_now: bool = True
) -> None:
    """`counted` are pairs of an instant (ms since 1970) and how many calls there were from it.

    Unless the last call was `just_now`, only the counts are written.
    """
    if just_now:
        touch_key(tx, key_id)
    for at, requests in counted:
        add_requests(tx, key_id, at, requests)
