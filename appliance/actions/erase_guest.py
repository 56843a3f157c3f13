"""Erase a guest: the reservation stays, who it was for does not (law 09-08)."""

from collections.abc import Sequence
from dataclasses import dataclass

from appliance.store.connection import Transaction
from appliance.store.erasing import add_erasure, erase_texts_of, keep_existing
from appliance.store.letters import forget_no_reminders
from appliance.store.reservations import add_history, get_reservation, update_reservation
from appliance.store.retention import erase_deliveries_of


@dataclass(frozen=True, slots=True)
class GuestErased:
    """A notice after commit: the list is still to be written, and the log to be cut."""

    reservation_id: str


def erase_guest(tx: Transaction, reservation_id: str, *, actor: str) -> None:
    """Erase on demand: name, contacts, notes, and every text that may repeat them.

    Reaches reservation, letters, webhook log, door log, history and claims. The table stays
    held, the pass and the code stay good: they name nobody. NotFound for an unknown id.
    """
    _erase(tx, reservation_id, actor)
    add_erasure(tx, reservation_id)
    tx.notices.append(GuestErased(reservation_id))


def erase_past_guests(tx: Transaction, reservation_ids: Sequence[str]) -> None:
    """The same for evenings long past. No list is kept: their age tells after a restore."""
    for reservation_id in reservation_ids:
        _erase(tx, reservation_id, "box")


def erase_again(tx: Transaction, reservation_ids: Sequence[str]) -> int:
    """Erase those that a backup has brought back; how many of them are here."""
    found = keep_existing(tx, reservation_ids)
    for reservation_id in found:
        _erase(tx, reservation_id, "box")
        add_erasure(tx, reservation_id)
    return len(found)


def _erase(tx: Transaction, reservation_id: str, actor: str) -> None:
    address = get_reservation(tx, reservation_id).customer_email
    update_reservation(
        tx, reservation_id, customer_name=None, customer_email=None, customer_phone=None,
        notes=None, request_hash=None,
    )  # fmt: skip
    if address is not None:
        forget_no_reminders(tx, address)
    erase_texts_of(tx, reservation_id)
    erase_deliveries_of(tx, reservation_id)
    add_history(tx, reservation_id, "erased", actor)
