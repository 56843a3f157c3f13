"""The API's error classes, each with its status, its code and its message in English.

The message is the `msgid` of its French and Arabic translations in `catalogues/`. A class inherits
what it does not state. The errors that partners can receive are listed in section 7 of the
interface. The other errors are for terminals, guests and the portal.
"""

import logging
import traceback
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from appliance.core.i18n import load_languages


@dataclass(frozen=True, slots=True)
class Rule:
    """What a value must be, in English. `blanks` maps its `{name}` placeholders to values."""

    text: str
    blanks: Mapping[str, object] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.text.format(**self.blanks)


def fill(text: str, blanks: Mapping[str, object], translate: Callable[[str], str]) -> str:
    """Translate `text`, then replace its placeholders. Rules among the values are translated."""
    values = {
        name: fill(value.text, value.blanks, translate) if isinstance(value, Rule) else value
        for name, value in blanks.items()
    }
    return translate(text).format(**values)


class ApiError(Exception):
    """An error response to an API request.

    `field` is the JSON path of the invalid member, or None. The other keyword arguments fill the
    placeholders in `text`. `others` are further faults of the same request, which pages show too.
    """

    status: ClassVar[int]
    code: ClassVar[str]
    text: ClassVar[str]
    headers: Mapping[str, str] = {}
    others: tuple["ApiError", ...] = ()

    def __init__(self, *, field: str | None = None, **details: object) -> None:
        """Format the message with `details`. Raises KeyError if a placeholder has no value."""
        self.error_en = self.text.format(**details)
        super().__init__(self.error_en)
        self.field = field
        self.details = details

    @property
    def error(self) -> str:
        """The message in French, with plain spaces and apostrophes."""
        return fill(self.text, self.details, load_languages().get("fr").plain)

    def body(self) -> dict[str, str]:
        """Return the JSON error body (interface, section 7), with `field` if it is set."""
        body = {"error": self.error, "error_en": self.error_en, "code": self.code}
        if self.field is not None:
            body["field"] = self.field
        return body


class InvalidJson(ApiError):
    status, code, text = 400, "INVALID_JSON", "The request body is not a valid JSON object."


class UnreadableJson(InvalidJson):
    """Like InvalidJson, but the message also says why the JSON is invalid."""

    text = "The request body is not a valid JSON object: {rule}"


class InvalidDate(ApiError):
    status, code = 400, "INVALID_DATE"
    text = "Invalid date: expected one date YYYY-MM-DD, for example 2026-12-31."


class DateOutOfRange(ApiError):
    status, code = 400, "INVALID_DATE"
    text = "Date outside the booking period: from tonight to 730 days ahead."


class InvalidDateRange(ApiError):
    status, code = 400, "INVALID_DATE"
    text = "Invalid period: each date is YYYY-MM-DD, and the end is not before the start."


class RangeTooLong(ApiError):
    status, code = 400, "INVALID_DATE"
    text = "Invalid period: at most {largest} evenings, and the end is not before the start."


class InvalidSlot(ApiError):
    status, code = 400, "INVALID_SLOT"
    text = "Invalid slot: expected one time HH:MM, for example 19:30."


class SlotUnknown(InvalidSlot):
    """No slot starts at this time. The message names the slots of that date."""

    text = "Invalid slot: no slot starts at {slot}. Offered on {date}: {offered}."


class SlotNotOffered(InvalidSlot):
    """The slot is not offered on that weekday. The message names the slots of that date."""

    text = "Invalid slot: {slot} is not offered on that weekday. Offered on {date}: {offered}."


class SlotEnded(InvalidSlot):
    text = "This slot has already ended on that date."


class InvalidTable(ApiError):
    status, code, text = 400, "INVALID_TABLE", "Invalid table identifier: expected a UUID."


class TablesRequired(InvalidTable):
    text = "The tables (tableIds) are required: a list of 1 to {largest} table ids."


class InvalidGuests(ApiError):
    status, code = 400, "INVALID_GUESTS"
    text = 'Invalid guest count: expected an integer of at least 1, written 2 and not 2.0 or "2".'


class GuestsOutOfRange(ApiError):
    status, code = 400, "GUESTS_OUT_OF_RANGE"
    text = "This table seats {capacity_min} to {capacity_max} guests."


class GroupOutOfRange(GuestsOutOfRange):
    text = "These tables together seat {capacity_min} to {capacity_max} guests."


class FewerThanArrived(GuestsOutOfRange):
    """Staff set a number of guests that is lower than the number of guests who have arrived."""

    text = "Already arrived: {arrived}. The number of guests cannot be lower."


class CustomerNameRequired(ApiError):
    status, code = 400, "CUSTOMER_NAME_REQUIRED"
    text = "The customer's name (customer.name) is required."


class CustomerNotObject(CustomerNameRequired):
    text = "The customer (customer) must be a JSON object with at least a name (customer.name)."


class CustomerContactRequired(ApiError):
    status, code = 400, "CUSTOMER_CONTACT_REQUIRED"
    text = "The customer's email address or phone number is required."


class InvalidEmail(ApiError):
    status, code = 400, "INVALID_EMAIL"
    text = (
        "The customer's email address is invalid: expected one address, such as "
        "name@example.com, of at most 254 bytes."
    )


class IdempotencyKeyRequired(ApiError):
    status, code = 400, "IDEMPOTENCY_KEY_REQUIRED"
    text = "The idempotency key (idempotencyKey) is required, as text."


class ValidationError(ApiError):
    """A field's value breaks a rule.

    HTML pages show `rule` next to their own label for the field.
    """

    status, code, text = 400, "VALIDATION_ERROR", "Invalid field: {name}: {rule}"

    rule: Rule | None = None

    @classmethod
    def of(cls, name: str, rule: Rule) -> "ValidationError":
        """Return the error for the field `name`, which breaks `rule`."""
        error = cls(field=name, name=name, rule=rule)
        error.rule = rule
        return error

    def inside(self, path: str) -> "ValidationError":
        """Return this error with `path` prepended to the field name."""
        return ValidationError.of(f"{path}.{self.field}", self.rule or Rule(self.text))


def field_invalid(field: str, text: str, **blanks: object) -> ValidationError:
    """Return the error for `field`: `text` is the rule, `blanks` fill its placeholders."""
    return ValidationError.of(field, Rule(text, blanks))


def not_among(field: str, allowed: Iterable[str]) -> ValidationError:
    """Return the error for a `field` whose value is none of `allowed`."""
    return field_invalid(field, "it must be one of {allowed}.", allowed=", ".join(allowed))


class Faults:
    """Collects the errors of a request, to report all of them together."""

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
        """Keep faults that were not raised."""
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
        raise too_long(field, longest)


def too_long(field: str, longest: int) -> ValidationError:
    """Return the error for a `field` of more than `longest` characters."""
    return field_invalid(field, "at most {longest} characters.", longest=longest)


def json_unreadable(text: str, /, **blanks: object) -> UnreadableJson:
    """Return the error for a body that is not valid JSON: `text` is the reason in English."""
    return UnreadableJson(rule=Rule(text, blanks))


class MalformedRequest(ValidationError):
    """The request is not valid HTTP."""

    text = "The HTTP request is malformed."


class HeadersTooLarge(MalformedRequest):
    status = 431
    text = "The request's headers are too large (at most 64 KiB, cookies included)."


class InvalidWebhookUrl(ApiError):
    status, code, text = 400, "INVALID_WEBHOOK_URL", "Webhook URL refused: {rule}"


class WebhookUrlClosed(InvalidWebhookUrl):
    """The URL's network is not allowed. To allow it, add `entry` to `webhooks.allow_networks`."""

    text = (
        "Webhook URL refused: only public addresses are allowed, at port {usual} or a port "
        "from 1024 up. The venue can allow this one: add {entry} to webhooks.allow_networks."
    )


class WebhookNameClosed(InvalidWebhookUrl):
    """Like WebhookUrlClosed, for a host name, whose address the message must not contain."""

    text = (
        "Webhook URL refused: only public addresses are allowed, at port {usual} or a port "
        "from 1024 up. The venue can allow this one: add its IP address, followed by :{port}, "
        "to webhooks.allow_networks."
    )


class InvalidEventType(ApiError):
    status, code = 400, "INVALID_EVENT_TYPE"
    text = "Invalid event list: expected at least one of {allowed}."


class UnknownEventType(InvalidEventType):
    text = "Unknown event type: {name}. The types are {allowed}."


class Unauthorized(ApiError):
    status, code, text = 401, "UNAUTHORIZED", "Missing or invalid key."
    headers: Mapping[str, str] = {"WWW-Authenticate": 'Bearer realm="venuebox"'}


class OtherEnvironment(Unauthorized):
    """The key's prefix belongs to the other environment."""

    text = (
        "This key belongs to the other environment: use svc_test_ keys at the address that "
        "ends in /test, svc_live_ keys at the address without /test."
    )


class KeyRevoked(ApiError):
    status, code, text = 401, "KEY_REVOKED", "This key has been revoked."
    headers: Mapping[str, str] = {"WWW-Authenticate": 'Bearer realm="venuebox"'}


class ScopeMissing(ApiError):
    status, code, text = 403, "SCOPE_MISSING", "This key lacks the required scope: {scope}."


class NotFound(ApiError):
    status, code, text = 404, "NOT_FOUND", "Not found."


class UnknownIdentifier(NotFound):
    """A call with an API key found nothing, or nothing that this key may see or change."""

    text = (
        "This key reaches nothing with that identifier: it is unknown or over, or belongs to "
        "another key or to the other environment (test or live)."
    )


class TableNotFound(ApiError):
    status, code = 404, "TABLE_NOT_FOUND"
    text = "This table does not exist here: a table has different identifiers in test and in live."


class MethodNotAllowed(ApiError):
    status, code, text = 405, "METHOD_NOT_ALLOWED", "Method not supported at this address."


class TableTaken(ApiError):
    status, code, text = 409, "TABLE_TAKEN", "Table already reserved for this slot. Do not retry."


class NotChangeable(ApiError):
    status, code = 409, "NOT_CHANGEABLE"
    text = (
        "The reservation is cancelled, declined, completed or checked in: it can no longer be "
        "changed."
    )


class ChangedSince(ApiError):
    """The reservation has changed since the partner read it."""

    status, code = 409, "CHANGED"
    text = (
        "The reservation has changed since ifUpdatedAt: read it again, then send the change again."
    )


class HoldExpired(ApiError):
    status, code = 409, "HOLD_EXPIRED"
    text = (
        "This holdId is unknown or its time is over. Nothing was booked: try again without holdId."
    )


class TooManyHolds(ApiError):
    status, code = 409, "TOO_MANY_HOLDS"
    text = "{largest} holds are already open: release one first."


class TableNotBookable(ApiError):
    status, code, text = 409, "TABLE_NOT_BOOKABLE", "This table cannot be reserved through the API."


class VenueInactive(ApiError):
    status, code = 409, "VENUE_INACTIVE"
    text = "The venue is not accepting reservations at present."


class VenueClosed(VenueInactive):
    """The venue is closed on the requested evening."""

    text = "The venue is closed on that evening: nothing can be booked."


class TooManyEndpoints(ApiError):
    status, code = 409, "TOO_MANY_ENDPOINTS"
    text = "5 webhook endpoints are already active: deactivate one first."


class EndpointIsInactive(ApiError):
    status, code = 409, "ENDPOINT_INACTIVE"
    text = "This webhook endpoint is deactivated: reactivate it first."


class WrongState(ApiError):
    """The reservation's state does not allow the staff action (interface, section 3)."""

    status, code = 409, "WRONG_STATE"
    text = "Not possible in the reservation's present state: {state}."


class BodyTooLarge(ApiError):
    status, code, text = 413, "BODY_TOO_LARGE", "The request body exceeds 64 KiB."


class Misdirected(ApiError):
    """The Host header contains none of this box's names (docs/security.md, S14)."""

    status, code = 421, "MISDIRECTED"
    text = (
        "This box does not answer to that name. Use the address that the venue gave you. The "
        "venue can add a name to server.names."
    )


class HttpsRequired(ApiError):
    """A key or token was sent over plain http from another machine (docs/security.md, S32)."""

    status, code = 403, "HTTPS_REQUIRED"
    text = "Use https: without it, others can read your key. Ask for a new key."


class RateLimited(ApiError):
    status, code, text = 429, "RATE_LIMITED", "Too many requests: try again in 60 seconds."
    headers: Mapping[str, str] = {"Retry-After": "60"}


class InternalError(ApiError):
    status, code, text = 500, "INTERNAL_ERROR", "Internal error: nothing was recorded. Try again."


class Unavailable(ApiError):
    status, code = 503, "UNAVAILABLE"
    text = "Service temporarily unavailable: nothing was recorded. Try again."
    headers: Mapping[str, str] = {"Retry-After": "5"}


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

    text = "This terminal is not paired with this venue."


class TerminalRevoked(KeyRevoked):
    text = "This terminal's access was withdrawn: pair it again."


class BrowserRevoked(TerminalRevoked):
    """The terminal is a browser and was revoked.

    A response header makes the browser delete its guest data and cookie.
    """

    headers: Mapping[str, str] = {
        "WWW-Authenticate": 'Bearer realm="venuebox"',
        "Clear-Site-Data": '"storage"',
    }


class PairingRefused(Unauthorized):
    text = "Pairing code unknown, expired or already used: ask for a new one."


class PairingLater(RateLimited):
    text = "Too many wrong codes from this device: scan the QR code, or wait ten minutes."
    headers: Mapping[str, str] = {"Retry-After": "600"}


class FormTooLarge(BodyTooLarge):
    """A form submitted from an HTML page is too large."""

    text = (
        "This is more than the box accepts at once (64 KiB): shorten it, or send it in several"
        " parts."
    )


class TooManyBookings(RateLimited):
    text = "You already have several upcoming bookings: please call the venue."


class ManyFromAddress(RateLimited):
    text = (
        "Many bookings came from your network (Wi-Fi or operator), perhaps by other guests: "
        "please call the venue."
    )


class RoleMissing(ScopeMissing):
    text = "This terminal lacks the required right: {role}."


class NothingToUndo(WrongState):
    text = "Nothing to undo: this scan did not let anyone in ({state})."


class TooManyWrongCodes(RateLimited):
    text = "Too many wrong codes on this terminal: try again in a minute, or scan the QR code."


class SignInLater(RateLimited):
    text = "Too many wrong passwords: try again in {seconds} s. Nothing is lost."


class CodeLater(SignInLater):
    text = "Too many wrong codes: try again in {seconds} s. Nothing is lost."


class StaffRoleMissing(ScopeMissing):
    text = "This page requires the role {role}."


class OfferOver(WrongState):
    text = "This took more than a quarter of an hour: start again with a new QR code."


class SlotIsHeld(WrongState):
    text = (
        "Upcoming reservations hold a slot that would move across midnight: please move them first."
    )


class ChangedMeanwhile(WrongState):
    text = (
        "Someone has changed this meanwhile: nothing was overwritten. Open the page again, "
        "then repeat your change."
    )


class FormUsed(WrongState):
    """The form has already created a reservation and was sent again with different content."""

    text = (
        "This form has already made a reservation: nothing more was done. For another one, "
        "please send it again."
    )


class UnusualAmount(WrongState):
    text = (
        "This is far more than a table usually pays: nothing was recorded. If the amount is "
        "right, confirm it and record it again."
    )


class LastOwner(WrongState):
    text = "At least one owner must be able to sign in: make someone else an owner first."


class NameTaken(WrongState):
    text = "Someone already signs in as {name}: choose another name."


class NotSetUp(Unavailable):
    """The box has no owner yet and serves only the first-run pages (docs/security.md, S8)."""

    text = "This box is not set up yet: open the link that it shows when it starts."


class TooLate(WrongState):
    """It is too late for the guest to cancel or change. Partners and staff may at any time."""

    text = "Too late to do this here: please call the venue."
