"""Refusals that no partner gets: those of the door, of the portal and of guests."""

from appliance.errors import (
    BodyTooLarge,
    KeyRevoked,
    RateLimited,
    ScopeMissing,
    Unauthorized,
    Unavailable,
    WrongState,
)


class TerminalNotPaired(Unauthorized):
    """The door's 401."""


class TerminalRevoked(KeyRevoked): ...


class BrowserRevoked(TerminalRevoked):
    """The same for a browser: what it keeps of the guests goes with its cookie."""


class PairingRefused(Unauthorized): ...


class PairingLater(RateLimited): ...


class FormTooLarge(BodyTooLarge):
    """What people sent from a page, not a program."""


class TooManyBookings(RateLimited): ...


class RoleMissing(ScopeMissing): ...


class NothingToUndo(WrongState): ...


class TooManyWrongCodes(RateLimited): ...


class SignInLater(RateLimited): ...


class CodeLater(SignInLater): ...


class StaffRoleMissing(ScopeMissing): ...


class EndpointIsInactive(WrongState): ...


class OfferOver(WrongState): ...


class SlotIsHeld(WrongState): ...


class ChangedMeanwhile(WrongState): ...


class FormUsed(WrongState):
    """A form that has made its reservation came again with something else in it."""


class UnusualAmount(WrongState): ...


class LastOwner(WrongState): ...


class NameTaken(WrongState): ...


class NotSetUp(Unavailable):
    """Nothing is served before the first owner is there (docs/security.md, S8)."""


class TooLateToCancel(WrongState):
    """For the guest; partners and staff may cancel at any time."""
