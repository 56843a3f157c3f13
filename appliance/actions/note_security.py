"""Note in the security log what was done to who may do what, in the transaction that does it."""

from typing import Any

from appliance.store.connection import Transaction
from appliance.store.security_log import add_security_entry

CONSOLE = "console"  # a command at the machine itself
NOBODY = "nobody"  # somebody who did not show who they are


def note_security(tx: Transaction, actor: str, what: str, /, **detail: Any) -> None:
    """One line of the security log (docs/security.md, S23).

    `actor` is `staff:<id>`, `key:<id>`, `terminal:<id>`, `box`, CONSOLE or NOBODY. `detail`
    holds ids and names of the house's own things: no secret, no guest, nothing mistyped.
    """
    add_security_entry(tx, actor, what, detail)
