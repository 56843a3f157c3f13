"""Do something to a reservation as its author saw it: no lost update between two hosts."""

from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar

from appliance.house_errors import ChangedMeanwhile
from appliance.model.reservation import Reservation
from appliance.store.connection import Reader, Transaction
from appliance.store.reservations import get_reservation

P = ParamSpec("P")
R = TypeVar("R")


def get_as_seen(reader: Reader, reservation_id: str, seen: int) -> Reservation:
    """The reservation; ChangedMeanwhile when its version is not `seen`, NotFound."""
    reservation = get_reservation(reader, reservation_id)
    if reservation.version != seen:
        raise ChangedMeanwhile
    return reservation


def as_seen(
    tx: Transaction, reservation_id: str, seen: int,
    action: Callable[Concatenate[Transaction, str, P], R], *args: P.args, **kwargs: P.kwargs,
) -> R:  # fmt: skip
    """`action(tx, reservation_id, …)`, unless somebody changed the reservation meanwhile.

    `seen` is the version that the author read. A form sent twice is one change.
    """
    get_as_seen(tx, reservation_id, seen)
    return action(tx, reservation_id, *args, **kwargs)
