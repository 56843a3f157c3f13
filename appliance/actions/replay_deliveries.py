"""Replay many deliveries of an endpoint, a page at a time: each page is a short transaction."""

from dataclasses import dataclass

from appliance.actions.register_endpoint import EndpointsChanged
from appliance.house_errors import EndpointIsInactive
from appliance.store.connection import Transaction
from appliance.store.endpoints import get_endpoint
from appliance.store.replays import end_of_page, last_delivery, replay_between

PAGE = 500  # rows that one transaction looks at: a few milliseconds
_FOREVER = 2**62


@dataclass(frozen=True, slots=True)
class Selection:
    """Which deliveries: of an endpoint, in these states, of events in [since, until)."""

    endpoint_id: str
    states: tuple[str, ...] = ("dead",)
    since: int = 0
    until: int = _FOREVER


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a replay has got: deliveries looked at up to `after`, of those up to `last`."""

    after: int
    last: int
    replayed: int

    @property
    def done(self) -> bool:
        """Whether every delivery was looked at that was there at the beginning."""
        return self.after >= self.last


def replay_deliveries(
    tx: Transaction, selection: Selection, progress: Progress | None = None
) -> Progress:
    """Replay the next page of `selection`; call it with what it returned until that is done.

    As `replay_delivery` does for each. What happens meanwhile is not replayed. NotFound if
    the endpoint is unknown, EndpointIsInactive if it receives nothing.
    """
    if not get_endpoint(tx, selection.endpoint_id).active:
        raise EndpointIsInactive(state="inactive")
    begun = progress or Progress(0, last_delivery(tx), 0)
    end = end_of_page(tx, begun.after, begun.last, PAGE)
    if end is None:
        return Progress(begun.last, begun.last, begun.replayed)
    replayed = replay_between(
        tx,
        selection.endpoint_id,
        selection.states,
        (selection.since, selection.until),
        (begun.after, end),
    )
    if replayed:
        tx.notices.append(EndpointsChanged(selection.endpoint_id))
    return Progress(end, begun.last, begun.replayed + replayed)
