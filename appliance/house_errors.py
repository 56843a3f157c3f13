"""Refusals that no partner gets: those of the door, of the portal and of guests."""

from appliance import errors


class TerminalNotPaired(errors.Unauthorized):
    """The door's 401."""


class TerminalRevoked(errors.KeyRevoked): ...


class BrowserRevoked(TerminalRevoked):
    """The same for a browser: what it keeps of the guests goes with its cookie."""


class PairingRefused(errors.Unauthorized): ...


class PairingLater(errors.RateLimited): ...


class FormTooLarge(errors.BodyTooLarge):
    """What people sent from a page, not a program."""


class TooManyBookings(errors.RateLimited): ...


class RoleMissing(errors.ScopeMissing): ...


class NothingToUndo(errors.WrongState): ...


class TooManyWrongCodes(errors.RateLimited): ...


class SignInLater(errors.RateLimited): ...


class CodeLater(SignInLater): ...


class StaffRoleMissing(errors.ScopeMissing): ...


class EndpointIsInactive(errors.WrongState): ...


class OfferOver(errors.WrongState): ...


class SlotIsHeld(errors.WrongState): ...


class ChangedMeanwhile(errors.WrongState): ...


class FormUsed(errors.WrongState):
    """A form that has made its reservation came again with something else in it."""


class UnusualAmount(errors.WrongState): ...


class LastOwner(errors.WrongState): ...


class NameTaken(errors.WrongState): ...


class NotSetUp(errors.Unavailable):
    """Nothing is served before the first owner is there (docs/security.md, S8)."""


class TooLateToCancel(errors.WrongState):
    """For the guest; partners and staff may cancel at any time."""
