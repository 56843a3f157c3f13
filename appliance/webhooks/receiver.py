"""Where a webhook is sent: one URL, taken apart once, every odd spelling refused."""

import re
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address
from urllib.parse import urlsplit

from appliance.errors import RULES, InvalidWebhookUrl, WebhookUrlClosed
from appliance.webhooks.addresses import IpAddress, Reach, reach_of

URL_MAX = 2048
_NAME_MAX = 253
_PRINTABLE = re.compile(r"[!-\[\]-~]+")  # visible ASCII without the backslash
_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")


@dataclass(frozen=True, slots=True)
class Receiver:
    """A URL taken apart. `address` is set when the host is an IP address."""

    secure: bool
    host: str
    port: int
    target: str
    address: IpAddress | None

    @property
    def authority(self) -> str:
        """The Host header: the port only when it is not the usual one."""
        host = f"[{self.host}]" if isinstance(self.address, IPv6Address) else self.host
        return host if self.port == _usual_port(secure=self.secure) else f"{host}:{self.port}"


def parse_receiver(url: object, *, allow_http: bool) -> Receiver:
    """The receiver that `url` names; InvalidWebhookUrl says which rule it breaks.

    Knows nothing of which addresses and ports are permitted: that is the guard's.
    """
    if isinstance(url, str) and len(url) > URL_MAX:
        raise _refused("url_length")
    if not (isinstance(url, str) and _PRINTABLE.fullmatch(url)):
        raise _refused("url_absolute")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise _refused("url_host") from None
    if parts.scheme not in {"http", "https"} or not parts.netloc:
        raise _refused("url_absolute")
    if "@" in parts.netloc or "#" in url:
        raise _refused("url_user_info")
    if parts.scheme == "http" and not allow_http:
        raise _refused("url_https")
    secure = parts.scheme == "https"
    usual = _usual_port(secure=secure)
    name, address = _parse_host(host or "", parts.netloc)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Receiver(secure, name, usual if port is None else port, target, address)


def forbidden(receiver: Receiver, address: IpAddress | None) -> InvalidWebhookUrl:
    """The refusal of a receiver that may not be reached, and what would open it.

    `address` is the one at fault, where it is known. The one that a name leads to is not told:
    names in the venue's network are not a partner's to explore.
    """
    if address is not None and reach_of(address) is Reach.NEVER:
        return _refused("url_reserved")
    host = "IP" if receiver.address is None else str(receiver.address)
    shown = f"[{host}]" if ":" in host else host
    return WebhookUrlClosed(
        field="url", usual=_usual_port(secure=receiver.secure), entry=f'"{shown}:{receiver.port}"'
    )


def _parse_host(host: str, netloc: str) -> tuple[str, IpAddress | None]:
    """The host in its one spelling, and its address when it is one.

    A name whose last label is a number is an IPv4 address in some notation (127.1,
    0x7f000001, 2130706433): only the usual four decimal numbers are taken.
    """
    try:
        if "[" in netloc:
            behind = netloc.rpartition("]")[2]
            if "%" in host or not netloc.startswith("[") or behind[:1] not in {"", ":"}:
                raise _refused("url_host")
            address = IPv6Address(host)
            return str(address), address
        name = host.removesuffix(".")
        labels = name.split(".")
        if _NUMBER.fullmatch(labels[-1]):
            return host, IPv4Address(host)
    except ValueError:
        raise _refused("url_host") from None
    if len(name) > _NAME_MAX or not all(_LABEL.fullmatch(label) for label in labels):
        raise _refused("url_host")
    return name, None


def _usual_port(*, secure: bool) -> int:
    return 443 if secure else 80


def _refused(rule: str) -> InvalidWebhookUrl:
    french, english = RULES[rule]
    return InvalidWebhookUrl(field="url", rule_fr=french, rule=english)
