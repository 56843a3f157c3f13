"""What is allowed in a setting beyond its type, so that no box starts with what fails later."""

from ipaddress import ip_network
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from appliance.errors import Trouble

_TOKEN_LEAST = 16
_NEVER_IN_A_BASE = frozenset(" ?#@<>\"'\\")
_DAYS = (1, 36_500)  # a calendar has no days for much more
RANGES = {
    "server.port": (0, 65535),
    "server.tls_port": (0, 65535),
    "mail.port": (1, 65535),
    "mail.reminder_hours": (0, 720),
    "guest.cancel_hours": (0, 720),
    "backup.hour": (0, 23),
    "door.early_minutes": (0, 1440),
    "webhooks.clock_grace_minutes": (0, 1440),
    "retention.contact_days": _DAYS,
    "retention.attempt_days": _DAYS,
    "retention.attempt_rows": (1, 1_000_000_000),
    "retention.attempt_megabytes": (1, 1_000_000),
    "retention.answer_days": _DAYS,
    "retention.dead_days": _DAYS,
    "retention.security_days": _DAYS,
}


def check_setting(name: str, value: Any) -> None:
    """What its type does not say of a setting; Trouble names it, the value and what is allowed."""
    wrong = None
    least, most = RANGES.get(name, (0, 0))
    if most and not least <= value <= most:
        wrong = f"{least} to {most}"
    elif name == "mail.security" and value not in {"starttls", "tls", "none"}:
        wrong = "starttls, tls or none"
    elif name.startswith(("api.", "booking.hourly", "booking.open")) and value < 1:
        wrong = "1 or more"
    elif name == "server.app_url" and value and not _is_base(value):
        wrong = "an address such as https://box.example without a path at its end"
    elif name == "backup.directory" and value and not _is_path(value):
        wrong = "a path from the root such as /mnt/usb"
    elif name == "server.metrics_token" and 0 < len(value) < _TOKEN_LEAST:
        wrong = "nothing, or 16 characters or more"
    elif name == "server.trusted_proxies" and not all(map(_is_network, value)):
        wrong = "addresses or networks such as 192.168.1.10 or 10.0.0.0/8"
    if wrong:
        raise Trouble(f"{name} is {value!r}: {wrong} is allowed")


def _is_path(text: str) -> bool:
    """A line break in it would begin another line of systemd's unit."""
    return Path(text).is_absolute() and text.isprintable()


def _is_base(url: str) -> bool:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:  # half an IPv6 address, a port that is none
        return False
    # What is left out by urlsplit, such as a line break at the end, would be in every link.
    plain = url.isprintable() and not _NEVER_IN_A_BASE & set(url) and not url.endswith("/")
    return parts.scheme in {"http", "https"} and bool(parts.hostname) and plain and port != 0


def _is_network(text: str) -> bool:
    try:
        ip_network(text, strict=False)
    except ValueError:
        return False
    return True
