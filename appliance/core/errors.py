"""Every documented refusal as a class; `refusals.toml` has the partners' statuses and sentences."""

import logging
import tomllib
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import resources
from typing import ClassVar

_TABLE = tomllib.loads(resources.files("appliance").joinpath("refusals.toml").read_text("utf-8"))
RULES: Mapping[str, tuple[str, str]] = _TABLE.pop("rules")


class ApiError(Exception):
    """Something the box declines to do, with the answer its caller gets.

    `field` is the JSON path of the offending member where there is one. Constructor
    arguments fill the braces of the two messages.
    """

    status: ClassVar[int]
    code: ClassVar[str]
    french: ClassVar[str]
    english: ClassVar[str]
    headers: ClassVar[dict[str, str]] = {}

    def __init_subclass__(cls) -> None:
        for name, value in _TABLE.get(cls.__name__, {}).items():
            setattr(cls, name, value)

    def __init__(self, *, field: str | None = None, **details: object) -> None:
        """Fill the messages with `details`; KeyError when a brace has no detail."""
        super().__init__(self.english.format(**details))
        self.field = field
        self.details = details
        self.error = self.french.format(**details)
        self.error_en = self.english.format(**details)

    def body(self) -> dict[str, str]:
        """The error body (interface, section 7), plus the optional `field`."""
        body = {"error": self.error, "error_en": self.error_en, "code": self.code}
        if self.field is not None:
            body["field"] = self.field
        return body


class InvalidJson(ApiError): ...


class InvalidDate(ApiError): ...


class DateOutOfRange(ApiError): ...


class InvalidDateRange(ApiError): ...


class InvalidSlot(ApiError): ...


class SlotEnded(InvalidSlot): ...


class InvalidTable(ApiError): ...


class InvalidGuests(ApiError): ...


class GuestsOutOfRange(ApiError): ...


class CustomerNameRequired(ApiError): ...


class CustomerContactRequired(ApiError): ...


class InvalidEmail(ApiError): ...


class IdempotencyKeyRequired(ApiError): ...


@dataclass(frozen=True, slots=True)
class Rule:
    """What a field must be, in French and English; `blanks` fill the braces of both."""

    french: str
    english: str
    blanks: Mapping[str, object] = field(default_factory=dict)


class ValidationError(ApiError):
    """`rule` is what pages say of the field, which they know by a name of their own."""

    rule: Rule | None = None

    @classmethod
    def of(cls, name: str, rule: Rule) -> "ValidationError":
        """The refusal of the field `name`."""
        fault = cls(
            field=name,
            rule_fr=f"{name} : {rule.french.format(**rule.blanks)}",
            rule=f"{name}: {rule.english.format(**rule.blanks)}",
        )
        fault.rule = rule
        return fault

    def inside(self, path: str) -> "ValidationError":
        """The same fault, of a member of what stands at `path`."""
        rules = {name: f"{path}.{text}" for name, text in self.details.items()}
        return ValidationError(field=f"{path}.{self.field}", **rules)


def field_invalid(field: str, rule: str, /, **blanks: object) -> ValidationError:
    """The refusal of one field by a rule of refusals.toml, its braces filled from `blanks`."""
    french, english = RULES[rule]
    return ValidationError.of(field, Rule(french, english, blanks))


class MalformedRequest(ValidationError):
    """What arrived is not HTTP as the box reads it."""


class InvalidWebhookUrl(ApiError): ...


class WebhookUrlClosed(InvalidWebhookUrl):
    """One that the owner may open; `entry` is what `webhooks.allow_networks` then needs."""


class InvalidEventType(ApiError): ...


class Unauthorized(ApiError): ...


class KeyRevoked(ApiError): ...


class ScopeMissing(ApiError): ...


class NotFound(ApiError): ...


class TableNotFound(ApiError): ...


class MethodNotAllowed(ApiError): ...


class TableTaken(ApiError): ...


class TableNotBookable(ApiError): ...


class VenueInactive(ApiError): ...


class VenueClosed(VenueInactive):
    """The same for one evening: a closing day."""


class TooManyEndpoints(ApiError): ...


class WrongState(ApiError):
    """A staff action that the reservation's state does not allow (interface, section 3)."""


class BodyTooLarge(ApiError): ...


class Misdirected(ApiError):
    """Asked for under a name that is none of the box's (docs/security.md, S14)."""


class HttpsRequired(ApiError):
    """A key or a token came over plain http from another machine (docs/security.md, S32)."""


class RateLimited(ApiError): ...


class InternalError(ApiError): ...


class Unavailable(ApiError): ...


class OperatorError(Exception):
    """A problem for the person who runs the box: one sentence, what to do included."""


log = logging.getLogger(__name__)


def log_exception(what: str, error: BaseException) -> None:
    """Note where in the code `what` failed.

    The exception's text may hold what a guest wrote, or a key; its place in the code does not.
    """
    place = "".join(traceback.format_tb(error.__traceback__)).rstrip()
    log.error("%s failed: %s\n%s", what, type(error).__name__, place)


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
