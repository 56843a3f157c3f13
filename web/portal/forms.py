"""Read forms and query parameters."""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import fields, replace
from datetime import date, timedelta
from string import hexdigits
from typing import TYPE_CHECKING, TypeVar

from aiohttp import web

from appliance.core.errors import (
    BodyTooLarge,
    Faults,
    FormTooLarge,
    InvalidDate,
    Rule,
    ValidationError,
    check_length,
    field_invalid,
)
from appliance.core.text import clean_line
from appliance.http.request import read_body
from appliance.venue.model import parse_date

TEXT_MAX = 10_000
_FIELD_MAX = 500
_INTEGER_MAX = 10**9
_FIELDS_MAX = 1000
_PARTS_MAX = 20
_FORM = re.compile(r'application/x-www-form-urlencoded(; *charset="?utf-8"?)?', re.IGNORECASE)
_UPLOAD = re.compile(r"multipart/form-data; *boundary=([\w'()+,./:=?-]{1,70})", re.IGNORECASE)
_PART_NAME = re.compile(rb'Content-Disposition: form-data; name="([a-z_]{1,40})"', re.IGNORECASE)
_PART_HEAD_MAX = 1000
_ESCAPED = {(a + b).encode(): bytes([int(a + b, 16)]) for a in hexdigits for b in hexdigits}


if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T", bound="DataclassInstance")


class UnsupportedForm(ValidationError):
    """The content type or charset of a request body is not supported."""

    status = 415


class Form:
    """The fields of a submitted form. A missing field has an empty value."""

    def __init__(
        self,
        fields: Mapping[str, str] | Iterable[tuple[str, str]],
        files: Mapping[str, bytes] | None = None,
    ) -> None:
        self._pairs = list(fields.items() if isinstance(fields, Mapping) else fields)
        self._fields: dict[str, str] = dict(reversed(self._pairs))  # the first value of each name
        self._files = files or {}

    def text(self, name: str, longest: int = 200) -> str:
        """Return the field as one line, composed (NFC), with single spaces.

        Direction marks and other characters that nobody sees are dropped. Raises ValidationError
        if it is longer than `longest` characters or contains control characters.
        """
        return _checked(clean_line(self._fields.get(name, "")), name, longest)

    def needed(self, name: str, rule: str, longest: int = 200) -> str:
        """Return a required field as one line, like `text`.

        Raises ValidationError with `rule`, a rule in English, if the field is empty.
        """
        value = self.text(name, longest)
        if not value:
            raise field_invalid(name, rule)
        return value

    def name(self, longest: int = 200) -> str:
        """Return the required field called `name`. Raises ValidationError if it is empty."""
        return self.needed("name", "please give a name.", longest)

    def one_of(self, name: str, choices: Collection[str]) -> str:
        """Return the field's value. Raises ValidationError if it is not one of `choices`."""
        value = self._fields.get(name, "")
        if value not in choices:
            raise field_invalid(name, "please give one of the list.")
        return value

    def lines(self, name: str, longest: int = TEXT_MAX) -> str:
        """Return a multi-line field without leading and trailing white space.

        Raises ValidationError under the same conditions as `text`.
        """
        value = self._fields.get(name, "").replace("\r\n", "\n").strip()
        return _checked(value, name, longest)

    def file(self, name: str) -> bytes:
        """Return the content of an uploaded file, or b"" if none was chosen."""
        return self._files.get(name, b"")

    def secret(self, name: str) -> str:
        """Return a password exactly as entered."""
        return self._fields.get(name, "")

    def all(self, name: str) -> list[str]:
        """Return the values of all selected check boxes that have this name."""
        return [_checked(value, name, TEXT_MAX) for key, value in self._pairs if key == name]

    def typed(self) -> dict[str, str]:
        """Return the values as entered, for showing the form again. Missing fields are empty.

        The result includes passwords, which a page must not show.
        """
        return defaultdict(str, self._fields)

    def days(self) -> tuple[int, ...]:
        """Return the selected weekdays (0 = Sunday). Raises ValidationError if one is invalid."""
        days = self.all("days")
        if not set(days) <= set("0123456"):
            raise field_invalid("days", "at least one day.")
        return tuple(sorted({int(day) for day in days}))

    def fill(self, entry: T) -> T:
        """Return a copy of the dataclass `entry` with the values of the form.

        Reads fields of the types str, int, with `| None` or without, and bool, except `id`. An
        empty field and 0 are None. Raises ValidationError if fields are invalid.
        """
        changes: dict[str, object] = {}
        faults = Faults()
        for name, kind in ((field.name, field.type) for field in fields(entry)):
            if kind is bool:
                changes[name] = self.checked(name)
            elif kind is int:
                changes[name] = faults.read(self.integer, name, 0, _INTEGER_MAX)
            elif kind == int | None and self._fields.get(name):
                changes[name] = faults.read(self.integer, name, 0, _INTEGER_MAX) or None
            elif kind == int | None:
                changes[name] = None
            elif kind is str and name != "id":
                changes[name] = faults.read(self.text, name, _FIELD_MAX)
            elif kind == str | None:
                changes[name] = faults.read(self.text, name, _FIELD_MAX) or None
        faults.raise_all()
        return replace(entry, **changes)

    def pairs(self) -> list[tuple[str, str]]:
        """Return all (name, value) pairs in form order, for a page that submits the form again."""
        return list(self._pairs)

    def checked(self, name: str) -> bool:
        """Return whether a check box is selected."""
        return bool(self._fields.get(name))

    def integer(self, name: str, smallest: int, largest: int) -> int:
        """Return the field as an integer.

        Raises ValidationError if it is not a whole number from `smallest` to `largest`.
        """
        text = self.text(name)
        digits = text.removeprefix("-")
        fits = digits.isascii() and digits.isdecimal() and len(digits) <= 12
        if not fits or not smallest <= int(text) <= largest:
            raise field_invalid(
                name,
                "please give a whole number from {smallest} to {largest}.",
                smallest=smallest,
                largest=largest,
            )
        return int(text)


FORM: web.RequestKey[Form] = web.RequestKey("form", Form)
"""The submitted form of a portal POST. `guarded` sets it before it calls the handler."""


async def read_form(request: web.Request, *, takes_files: bool = False) -> Form:
    """Read and return the form. It must be URL-encoded UTF-8. `takes_files` also allows multipart.

    Raises UnsupportedForm if the form has a different content type or charset, ValidationError if
    it is malformed or does not arrive completely within 30 s, FormTooLarge if it exceeds 64 KiB,
    and StaffRoleMissing if the sender's access was revoked while the form was being received.
    """
    kind = request.headers.get("Content-Type", "")
    if not kind and not request.can_read_body:
        return Form(())
    upload = _UPLOAD.fullmatch(kind) if takes_files else None
    if upload is None and _FORM.fullmatch(kind) is None:
        raise UnsupportedForm.of("form", Rule("please give a form of this page."))
    try:
        raw = await read_body(request)
    except BodyTooLarge:
        raise FormTooLarge from None
    unreadable = field_invalid("form", "please give a form that can be read.")
    if raw is None:
        raise unreadable
    try:
        return Form(_fields_of(raw)) if upload is None else _form_of(raw, upload[1].encode())
    except (ValueError, KeyError):
        raise unreadable from None


def _fields_of(raw: bytes) -> Iterable[tuple[str, str]]:
    """Yield the fields of a URL-encoded form. Raises ValueError or KeyError if it is malformed.

    aiohttp's parser and `parse_qsl` are not used because they need more than 20 ms for 64 KiB of
    stray percent signs.
    """
    if raw.count(b"&") >= _FIELDS_MAX:
        raise ValueError("too many fields")
    for field in raw.replace(b"+", b" ").split(b"&"):
        name, _, value = field.partition(b"=")
        if field:
            yield _unquoted(name), _unquoted(value)


def _unquoted(text: bytes) -> str:
    """Decode percent escapes. Raises KeyError if a `%` is not followed by two hex digits."""
    first, *others = text.split(b"%")
    return b"".join([first, *(_ESCAPED[part[:2]] + part[2:] for part in others)]).decode()


def _form_of(raw: bytes, boundary: bytes) -> Form:
    """Return a multipart form. Raises ValueError if it is malformed or a field is not UTF-8."""
    found: list[tuple[str, str]] = []
    files: dict[str, bytes] = {}
    _, *parts, end = (b"\r\n" + raw).split(b"\r\n--" + boundary, _PARTS_MAX + 1)
    if not end.startswith(b"--"):
        raise ValueError("too many parts, or no closing boundary")
    for part in parts:
        head, _, value = part.partition(b"\r\n\r\n")
        name = _PART_NAME.search(head, 0, _PART_HEAD_MAX)
        if name is None:
            raise ValueError("part without a name")
        if b"filename=" in head:
            files[name[1].decode()] = value
        else:
            found.append((name[1].decode(), value.decode()))
    return Form(found, files)


def date_parameter(request: web.Request) -> date | None:
    """Return the date in `?date=`, or None if there is none. Raises InvalidDate if it is invalid.

    Dates at the very start or end of Python's calendar count as invalid, because pages link to
    the days before and after.
    """
    text = request.query.get("date")
    if not text:
        return None
    day = parse_date(text)
    if day is None or not date.min + timedelta(days=2) < day < date.max - timedelta(days=2):
        raise InvalidDate(field="date")
    return day


def number_parameter(request: web.Request, name: str) -> int | None:
    """Return the query parameter `name`, or None if it is not a number of up to 15 digits."""
    text = request.query.get(name, "")
    return int(text) if re.fullmatch("[0-9]{1,15}", text) else None


def _checked(value: str, name: str, longest: int) -> str:
    check_length(value, name, longest)
    unreadable = any(unicodedata.category(c) in {"Cc", "Cs"} and c not in "\n\t" for c in value)
    if unreadable or "\N{REPLACEMENT CHARACTER}" in value:
        raise field_invalid(
            name, "please give text that can be read, without a replacement sign (�)."
        )
    return value
