"""The API's error classes. `refusals.toml` contains their status codes and messages.

The errors that partners can receive are listed in section 7 of the interface. The other errors are
for terminals, guests and the portal.
"""

import logging
import tomllib
import traceback
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from importlib import resources
from typing import Any, ClassVar

_TABLE = tomllib.loads(resources.files("appliance").joinpath("refusals.toml").read_text("utf-8"))
RULES: Mapping[str, tuple[str, str]] = _TABLE.pop("rules")


class ApiError(Exception):
    """An error response to an API request.

    `field` is the JSON path of the invalid member, or None. The other keyword arguments fill the
    placeholders in the French and the English message. `others` are further faults of the same
    request, which pages show too.
    """

    status: ClassVar[int]
    code: ClassVar[str]
    french: ClassVar[str]
    english: ClassVar[str]
    headers: Mapping[str, str] = {}
    others: tuple["ApiError", ...] = ()

    def __init_subclass__(cls) -> None:
        for name, value in _TABLE.get(cls.__name__, {}).items():
            setattr(cls, name, value)

    def __init__(self, *, field: str | None = None, **details: object) -> None:
        """Format the messages with `details`. Raises KeyError if a placeholder has no value."""
        super().__init__(self.english.format(**details))
        self.field = field
        self.details = details
        self.error = self.french.format(**details)
        self.error_en = self.english.format(**details)

    def body(self) -> dict[str, str]:
        """Return the JSON error body (interface, section 7), with `field` if it is set."""
        body = {"error": self.error, "error_en": self.error_en, "code": self.code}
        if self.field is not None:
            body["field"] = self.field
        return body


class InvalidJson(ApiError): ...


class UnreadableJson(InvalidJson):
    """Like InvalidJson, but the message also says why the JSON is invalid."""


class InvalidDate(ApiError): ...


class DateOutOfRange(ApiError): ...


class InvalidDateRange(ApiError): ...


class InvalidSlot(ApiError): ...


class SlotUnknown(InvalidSlot):
    """No slot starts at this time. The message names the slots of that date."""


class SlotNotOffered(InvalidSlot):
    """The slot is not offered on that weekday. The message names the slots of that date."""


class SlotEnded(InvalidSlot): ...


class InvalidTable(ApiError): ...


class InvalidGuests(ApiError): ...


class GuestsOutOfRange(ApiError): ...


class FewerThanArrived(GuestsOutOfRange):
    """Staff set a number of guests that is lower than the number of guests who have arrived."""


class CustomerNameRequired(ApiError): ...


class CustomerNotObject(CustomerNameRequired): ...


class CustomerContactRequired(ApiError): ...


class InvalidEmail(ApiError): ...


class IdempotencyKeyRequired(ApiError): ...


@dataclass(frozen=True, slots=True)
class Rule:
    """A validation rule in French and English. `blanks` maps its placeholders to values."""

    french: str
    english: str
    blanks: Mapping[str, object] = field(default_factory=dict)


class ValidationError(ApiError):
    """A field's value breaks a rule.

    HTML pages show `rule` next to their own label for the field.
    """

    rule: Rule | None = None

    @classmethod
    def of(cls, name: str, rule: Rule) -> "ValidationError":
        """Return the error for the field `name`, which breaks `rule`."""
        error = cls(
            field=name,
            rule_fr=f"{name} : {rule.french.format(**rule.blanks)}",
            rule=f"{name}: {rule.english.format(**rule.blanks)}",
        )
        error.rule = rule
        return error

    def inside(self, path: str) -> "ValidationError":
        """Return this error with `path` prepended to the field name."""
        rules = {name: f"{path}.{text}" for name, text in self.details.items()}
        return ValidationError(field=f"{path}.{self.field}", **rules)


def field_invalid(field: str, rule: str, **blanks: object) -> ValidationError:
    """Return the error for `field`, with a rule from refusals.toml formatted with `blanks`."""
    french, english = RULES[rule]
    return ValidationError.of(field, Rule(french, english, blanks))


class Faults:
    """Collects the faults of a request, so that its sender hears of all of them at once."""

    def __init__(self) -> None:
        self._found: list[ApiError] = []

    def read(self, parse: Callable[..., Any], *args: object) -> Any:
        """Return `parse(*args)`. If it raises an ApiError, keep that and return None."""
        try:
            return parse(*args)
        except ApiError as fault:
            self.add(fault, *fault.others)
            return None

    def add(self, *faults: ApiError) -> None:
        """Keep faults that nothing has raised."""
        self._found += faults

    def raise_all(self) -> None:
        """Raise the first fault, with the others as its `others`. Do nothing if there is none."""
        raise_faults(self._found)


def raise_faults(faults: Iterable[ApiError]) -> None:
    """Raise the first fault, with the others as its `others`. Do nothing if there is none."""
    found = [*faults]
    if found:
        found[0].others = tuple(found[1:])
        raise found[0]


def check_length(value: str, field: str, longest: int) -> None:
    """Raise ValidationError for `field` if `value` is longer than `longest` characters."""
    if len(value) > longest:
        raise field_invalid(field, "at_most", longest=longest)


def json_unreadable(rule: str, /, **blanks: object) -> UnreadableJson:
    """Return the error for a body that is not valid JSON, with a reason from refusals.toml."""
    french, english = RULES[rule]
    return UnreadableJson(rule_fr=french.format(**blanks), rule=english.format(**blanks))


class MalformedRequest(ValidationError):
    """The request is not valid HTTP."""


class HeadersTooLarge(MalformedRequest): ...


class InvalidWebhookUrl(ApiError): ...


class WebhookUrlClosed(InvalidWebhookUrl):
    """The URL's network is not allowed. To allow it, add `entry` to `webhooks.allow_networks`."""


class WebhookNameClosed(InvalidWebhookUrl):
    """Like WebhookUrlClosed, for a host name, whose address the message must not contain."""


class InvalidEventType(ApiError): ...


class UnknownEventType(InvalidEventType): ...


class Unauthorized(ApiError): ...


class OtherEnvironment(Unauthorized):
    """The key's prefix belongs to the other environment."""


class KeyRevoked(ApiError): ...


class ScopeMissing(ApiError): ...


class NotFound(ApiError): ...


class TableNotFound(ApiError): ...


class MethodNotAllowed(ApiError): ...


class TableTaken(ApiError): ...


class NotChangeable(ApiError): ...


class ChangedSince(ApiError):
    """The reservation has changed since the partner read it."""


class HoldExpired(ApiError): ...


class TooManyHolds(ApiError): ...


class TableNotBookable(ApiError): ...


class VenueInactive(ApiError): ...


class VenueClosed(VenueInactive):
    """The venue is closed on the requested evening."""


class TooManyEndpoints(ApiError): ...


class EndpointIsInactive(ApiError): ...


class WrongState(ApiError):
    """The reservation's state does not allow the staff action (interface, section 3)."""


class BodyTooLarge(ApiError): ...


class Misdirected(ApiError):
    """The Host header contains none of this box's names (docs/security.md, S14)."""


class HttpsRequired(ApiError):
    """A key or token was sent over plain http from another machine (docs/security.md, S32)."""


class RateLimited(ApiError): ...


class InternalError(ApiError): ...


class Unavailable(ApiError): ...


class OperatorError(Exception):
    """A problem that the operator can solve. The message says what is wrong and how to solve it."""


log = logging.getLogger(__name__)


def log_exception(task: str, error: BaseException) -> None:
    """Log that `task` failed, with the exception's type and traceback.

    The exception's message is not logged, because it may contain personal data or a key.
    """
    trace = "".join(traceback.format_tb(error.__traceback__)).rstrip()
    log.error("%s failed: %s\n%s", task, type(error).__name__, trace)


class TerminalNotPaired(Unauthorized):
    """The request has no token of a paired terminal (401)."""


class TerminalRevoked(KeyRevoked): ...


class BrowserRevoked(TerminalRevoked):
    """The terminal is a browser and was revoked.

    A response header makes the browser delete its guest data and cookie.
    """


class PairingRefused(Unauthorized): ...


class PairingLater(RateLimited): ...


class FormTooLarge(BodyTooLarge):
    """A form submitted from an HTML page is too large."""


class TooManyBookings(RateLimited): ...


class ManyFromAddress(RateLimited): ...


class RoleMissing(ScopeMissing): ...


class NothingToUndo(WrongState): ...


class TooManyWrongCodes(RateLimited): ...


class SignInLater(RateLimited): ...


class CodeLater(SignInLater): ...


class StaffRoleMissing(ScopeMissing): ...


class OfferOver(WrongState): ...


class SlotIsHeld(WrongState): ...


class ChangedMeanwhile(WrongState): ...


class FormUsed(WrongState):
    """The form has already created a reservation and was sent again with different content."""


class UnusualAmount(WrongState): ...


class LastOwner(WrongState): ...


class NameTaken(WrongState): ...


class NotSetUp(Unavailable):
    """The box has no owner yet and serves only the first-run pages (docs/security.md, S8)."""


class TooLateToCancel(WrongState):
    """It is too late for the guest to cancel. Partners and staff may cancel at any time."""
