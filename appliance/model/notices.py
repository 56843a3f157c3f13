"""Notices: what a commit tells the live feed, after it, in the words of the action that made it."""

from dataclasses import dataclass

from appliance.model.verdict import Verdict


@dataclass(frozen=True, slots=True)
class ReservationChanged:
    """A reservation was made or changed, whatever did it. `moved`: to another evening."""

    reservation_id: str
    moved: bool = False


@dataclass(frozen=True, slots=True)
class DoorChanged:
    """People came in, or were taken back: `verdict.admitted` of them, by that scan."""

    at: int
    terminal_id: str
    scan_id: str
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class ConflictChanged:
    """A conflict of the door was found, or somebody has acknowledged it."""

    conflict_id: str


@dataclass(frozen=True, slots=True)
class VenueChanged:
    """The venue may have another name, or other rules."""


@dataclass(frozen=True, slots=True)
class SigningKeyChanged:
    """Another key signs guest passes from now on: doors have to know it before it is shown."""


@dataclass(frozen=True, slots=True)
class TerminalGone:
    """A terminal's access was withdrawn."""

    terminal_id: str


@dataclass(frozen=True, slots=True)
class TerminalEdited:
    """A terminal has another name, or may do more or less than before."""

    terminal_id: str


@dataclass(frozen=True, slots=True)
class SessionEnded:
    """Somebody of the house is signed out of a browser, whoever ended that session."""

    session_id: str


@dataclass(frozen=True, slots=True)
class ClockConfirmed:
    """Somebody says that the machine's clock is right."""
