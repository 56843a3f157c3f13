"""The offline gate: an offline box counts no attempts (docs/decisions/webhooks.md)."""

from appliance.model.delivery import Outcome
from appliance.webhooks.network import Network
from appliance.webhooks.outcomes import CONN_TIMEOUT, DNS_TEMP, NO_ROUTE
from appliance.webhooks.uptime import Uptime

QUIET_MS = 60_000
AGAIN_MS = 60_000
_EVIDENCE_MS = 2 * AGAIN_MS
_EVIDENCE = (NO_ROUTE, DNS_TEMP, CONN_TIMEOUT)


class OfflineGate:
    """Says whether a failure is the box's own, from what the endpoints outside came to lately."""

    def __init__(self, network: Network, uptime: Uptime) -> None:
        self._network = network
        self._uptime = uptime
        self._last_success: int | None = None
        self._failed_at: dict[str, int] = {}

    def note_success(self) -> None:
        """An endpoint outside answered, whatever it said."""
        self._last_success = self._uptime.milliseconds()
        self._failed_at.clear()

    def is_to_blame(
        self, outcome: Outcome, host: str, hosts_outside: set[str], *, is_local: bool
    ) -> bool:
        """Whether the box had no way to `host`, by this outcome and those before it.

        `hosts_outside` are all that are not in the venue's network. For one of those it takes
        the machine's own word that no way leads out; or a minute without a success, and either
        two hosts that fail so or the only one whose name nobody answers for.
        """
        now = self._uptime.milliseconds()
        if is_local:
            return outcome.code == NO_ROUTE
        if outcome.code not in _EVIDENCE:
            return False
        self._failed_at[host] = now
        if not self._network.has_way_out():
            return True
        if self._last_success is not None and now - self._last_success < QUIET_MS:
            return False
        lately = sum(now - at <= _EVIDENCE_MS for at in self._failed_at.values())
        return lately >= (2 if outcome.code == CONN_TIMEOUT else min(2, len(hosts_outside)))
