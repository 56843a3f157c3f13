"""Reading the portal's forms: small, ours, and no text that a page or a file would choke on."""

import asyncio
import unicodedata
from collections.abc import Mapping

from aiohttp import web
from multidict import MultiDict

from appliance.errors import Rule, ValidationError
from terminal_bridge.context import look_again

FORM_TYPES = ("application/x-www-form-urlencoded", "multipart/form-data")
TEXT_MAX = 10_000
_SECONDS = 30.0


class Form:
    """The fields of a sent form; unknown ones are ignored, absent ones are empty."""

    def __init__(self, fields: Mapping[str, str] | MultiDict[str]) -> None:
        self._fields: MultiDict[str] = MultiDict(fields)

    def text(self, name: str, longest: int = 200) -> str:
        """One line, its spaces tidied; ValidationError when longer than `longest` characters."""
        value = " ".join(self._fields.get(name, "").split())
        return _checked(value, name, longest)

    def lines(self, name: str, longest: int = TEXT_MAX) -> str:
        """Several lines, as they were written but for spaces around them."""
        value = self._fields.get(name, "").replace("\r\n", "\n").strip()
        return _checked(value, name, longest)

    def secret(self, name: str) -> str:
        """A password: nothing of it is tidied."""
        return self._fields.get(name, "")

    def all(self, name: str) -> list[str]:
        """Every value of a field that may be ticked several times."""
        return [_checked(value, name, TEXT_MAX) for value in self._fields.getall(name, [])]

    def typed(self) -> dict[str, str]:
        """Everything as it was sent, to be shown in the form again: not for passwords."""
        return {
            name: value.encode(errors="replace").decode() for name, value in self._fields.items()
        }

    def ticked(self, name: str) -> bool:
        """Whether a box was ticked."""
        return bool(self._fields.get(name))

    def whole(self, name: str, smallest: int, largest: int) -> int:
        """A whole number from `smallest` to `largest`; ValidationError for anything else."""
        text = self.text(name)
        digits = text.removeprefix("-")
        fits = digits.isascii() and digits.isdecimal() and len(digits) <= 12
        if not fits or not smallest <= int(text) <= largest:
            raise field_error(
                name,
                "un nombre entier de {smallest} à {largest}.",
                "a whole number from {smallest} to {largest}.",
                smallest=smallest,
                largest=largest,
            )
        return int(text)


async def read_form(request: web.Request) -> Form:
    """The form that was sent; ValidationError when it is none of ours, or not here within 30 s.

    StaffRoleMissing for who may no longer send it by then.
    """
    is_here = request.content.is_eof()
    if request.content_type not in FORM_TYPES:
        raise field_error("form", "un formulaire de cette page.", "a form of this page.")
    try:
        async with asyncio.timeout(_SECONDS):
            sent = await request.post()
            fields = _texts_of(sent)
    # Another charset or encoding than the page's own, no text at all, or one that is not sent to
    # its end.
    except (ValueError, LookupError, RuntimeError, TimeoutError):
        raise field_error("form", "un formulaire lisible.", "a form that can be read.") from None
    if not is_here:
        look_again(request)
    return Form(fields)


def _texts_of(sent: Mapping[str, str | bytes | bytearray | web.FileField]) -> MultiDict[str]:
    """What was sent as texts; UnicodeError for one that is none, as some charsets make them."""
    fields: MultiDict[str] = MultiDict()
    for name, value in sent.items():
        if isinstance(value, str):
            value.encode()
            fields.add(name, value)
        elif isinstance(value, web.FileField):
            raw = value.file.read()
            fields.add(name, raw.decode("utf-8-sig", errors="replace"))
    return fields


def field_error(field: str, rule_fr: str, rule: str, **blanks: object) -> ValidationError:
    """A field is wrong; what it should be, in French and English, filled from `blanks`."""
    return ValidationError.of(field, Rule(f"il faut {rule_fr}", f"please give {rule}", blanks))


def _checked(value: str, name: str, longest: int) -> str:
    if len(value) > longest:
        raise field_error(
            name, "{longest} caractères au plus.", "at most {longest} characters.", longest=longest
        )
    if any(unicodedata.category(c) in {"Cc", "Cs"} and c not in "\n\t" for c in value):
        raise field_error(name, "un texte lisible.", "text that can be read.")
    return value
