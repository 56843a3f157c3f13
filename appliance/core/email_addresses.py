"""Email addresses: cleaned, checked, compared and linked, in any script."""

import re
import unicodedata
from urllib.parse import quote

import idna

EMAIL_MAX = 254  # in octets
_LOCAL_MAX = 64  # in octets
_ATOM = r"(?:[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]|[^\x00-\x7f])+"
_LOCAL = re.compile(rf"{_ATOM}(?:\.{_ATOM})*")
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_DOMAIN = re.compile(rf"{_LABEL}(?:\.{_LABEL})+")


def clean_email(text: str) -> str:
    """Return a typed address composed (NFC), without blanks around it and invisible characters."""
    visible = (c for c in unicodedata.normalize("NFC", text) if unicodedata.category(c) != "Cf")
    return "".join(visible).strip()


def split_address(address: str) -> tuple[str, str]:
    """Return the local part, and the domain in ASCII (IDNA), as a mail server needs them.

    Raises ValueError if `address` is not an email address. A local part that is not ASCII can only
    be sent to by a mail server that supports SMTPUTF8.
    """
    local, _, domain = address.rpartition("@")
    if not domain.isascii():
        domain = idna.encode(domain, uts46=True).decode("ascii")
    printable = local.isprintable() and not any(c.isspace() for c in local)
    octets = len(local.encode())
    if not (printable and octets <= _LOCAL_MAX and octets + 1 + len(domain) <= EMAIL_MAX):
        raise ValueError("not an email address")
    if not (_LOCAL.fullmatch(local) and _DOMAIN.fullmatch(domain)):
        raise ValueError("not an email address")
    return local, domain


def is_email(text: object) -> bool:
    """Whether `text` is an email address, at most EMAIL_MAX octets long."""
    try:
        return isinstance(text, str) and bool(split_address(text))
    except ValueError:
        return False


def email_key(text: str) -> str:
    """Return the form in which addresses are compared: without case, the domain in ASCII."""
    address = unicodedata.normalize("NFKC", clean_email(text))
    try:
        local, domain = split_address(address)
    except ValueError:
        return address.casefold()
    return f"{local}@{domain}".casefold()


def mailto(address: str) -> str:
    """Return the link that opens an email to `address`, or `""` if it is not an address."""
    try:
        local, domain = split_address(address)
    except ValueError:
        return ""
    return f"mailto:{quote(local, safe='')}@{domain}"
