"""Settings, read from `settings.toml` and `VENUEBOX_SECTION_NAME` environment variables."""

import dataclasses
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from ipaddress import ip_network
from pathlib import Path
from typing import Any, get_type_hints
from urllib.parse import parse_qsl, urlsplit

from appliance.core.errors import OperatorError
from appliance.core.scanner_settings import ReaderSettings, parse_readers

_TOKEN_LEAST = 16
_NEVER_IN_A_BASE = frozenset(" ?#@<>\"'\\")
_COUNT = (1, 10**9)
CHALLENGES = ("tls-alpn-01", "http-01", "dns-01")


def _setting(default: Any, meaning: str, allowed: Any = ("", lambda _: True)) -> Any:
    """Declare a setting. `allowed` is a (first, last) range or a (description, check) pair."""
    return field(default=default, metadata={"meaning": meaning, "allowed": allowed})


def _flag(meaning: str, *, default: bool = False) -> Any:
    return _setting(default, meaning)


def _days(default: int, meaning: str) -> Any:
    return _setting(default, meaning, (1, 36_500))  # more days would overflow a date


def _is_base(url: str) -> bool:
    if not url:
        return True
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:  # an incomplete IPv6 address or an invalid port
        return False
    # Check the whole string too, because urlsplit ignores some characters, e.g. line breaks.
    is_plain = url.isprintable() and not _NEVER_IN_A_BASE & set(url) and not url.endswith("/")
    return parts.scheme in {"http", "https"} and bool(parts.hostname) and is_plain and port != 0


def _is_origin(url: str) -> bool:
    return _is_base(url) and not urlsplit(url).path


def _are_hosts(texts: tuple[str, ...]) -> bool:
    return not any(set(text) & set(" /*@[]") or text.count(":") == 1 for text in texts)


def _are_networks(texts: tuple[str, ...]) -> bool:
    try:
        return all(ip_network(text, strict=False) for text in texts)
    except ValueError:
        return False


def _is_https_or_empty(url: str) -> bool:
    return _is_base(url.rstrip("/")) and (not url or url.startswith("https://"))


def is_target(text: str) -> bool:
    """Whether `text` is a valid `backup.target`: sftp://user@host/folder, s3://bucket or relay:."""
    if text == "relay:":
        return True
    try:
        url = urlsplit(text)
        options = dict(parse_qsl(url.query, strict_parsing=bool(url.query)))
        is_plain = text.isprintable() and url.port != 0 and not (url.fragment or url.password)
    except ValueError:
        return False
    if url.scheme == "sftp":
        is_whole = bool(url.username) and url.path.startswith("/") and options.keys() <= {"hostkey"}
    else:
        is_whole = url.scheme == "s3" and not (url.username or url.port)
        is_whole = is_whole and options.keys() <= {"endpoint", "region"}
        is_whole = is_whole and ("endpoint" not in options or _is_base(options["endpoint"]))
    return is_plain and is_whole and bool(url.hostname)


def _is_path(text: str) -> bool:
    # The path is written to the systemd unit, where a line break would start another directive.
    return not text or (Path(text).is_absolute() and text.isprintable())


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """The addresses that the box listens on, and the rules for access."""

    host: str = _setting("0.0.0.0", "address to listen on")  # noqa: S104 - the box serves the local network
    port: int = _setting(8080, "port to listen on; 0 selects any free port", (0, 65535))
    app_url: str = _setting(
        "",
        "public base URL for guest links; empty: the listening address",
        ("an address without a path, such as https://box.example", _is_origin),
    )
    names: tuple[str, ...] = _setting(
        (),
        "further host names to accept; requests for other names are refused",
        ("host names without https:// and port, such as box.example", _are_hosts),
    )
    trusted_proxies: tuple[str, ...] = _setting(
        (),
        "addresses or networks of proxies whose X-Forwarded-For and -Proto are trusted",
        ("addresses or networks such as 192.168.1.10 or 10.0.0.0/8", _are_networks),
    )
    tls_port: int = _setting(8443, "https port, unused on a loopback host; 0: no https", (0, 65535))
    allow_http: bool = _flag("accept keys and terminals over plain http from other machines")
    public_portal: bool = _flag(
        "serve the portal to the internet too, not only on the local network", default=True
    )
    mdns: bool = _flag("announce the box as <slug>.local on the LAN", default=True)
    metrics_token: str = _setting(
        "",
        "bearer token for /metrics, at least 16 characters; empty: owner and this machine only",
        ("nothing, or 16 characters or more", lambda token: not 0 < len(token) < _TOKEN_LEAST),
    )


@dataclass(frozen=True, slots=True)
class AcmeSettings:
    """The ACME authority that issues a public certificate for the host in `server.app_url`."""

    directory: str = _setting(
        "",
        "directory URL of an ACME authority; empty: no public certificate is obtained",
        ("an address such as https://acme-v02.api.letsencrypt.org/directory", _is_https_or_empty),
    )
    agree_terms: bool = _flag("you agree to the authority's terms of service; required")
    email: str = _setting("", "address for the authority's messages to you; empty: none")
    challenge: str = _setting(
        "tls-alpn-01",
        "how the authority verifies the host name: tls-alpn-01, http-01 or dns-01",
        ("tls-alpn-01, http-01 or dns-01", CHALLENGES.__contains__),
    )
    dns_hook: str = _setting(
        "",
        "program for dns-01, called with add or remove, the record's name and its value",
        ("a path from the root such as /usr/local/bin/dns-hook", _is_path),
    )
    ca_file: str = _setting(
        "",
        "CA certificate (PEM) for the https connection to the directory; empty: public CAs",
        ("a path from the root such as /etc/ssl/authority.pem", _is_path),
    )
    account_key_id: str = _setting("", "key id for authorities that require an existing account")
    account_hmac_key: str = _setting("", "HMAC key (base64url) that belongs to the key id")


@dataclass(frozen=True, slots=True)
class ApiSettings:
    """Rate limits for the partner interface."""

    rate_limit_per_minute: int = _setting(60, "requests per minute for each key", _COUNT)
    unauthenticated_per_minute: int = _setting(
        60, "requests per minute without a valid key, for each client address", _COUNT
    )


@dataclass(frozen=True, slots=True)
class WebhookSettings:
    """Which webhook receivers are allowed, and when the clock is trusted."""

    allow_networks: tuple[str, ...] = _setting(
        (), "private addresses or networks that may receive webhooks, each with an optional :port"
    )
    allow_http: bool = _flag("allow plain http receivers in live too (test always allows them)")
    clock_grace_minutes: int = _setting(
        10, "minutes after start to wait for a time server before the clock is trusted", (0, 1440)
    )


@dataclass(frozen=True, slots=True)
class RetentionSettings:
    """How long guests' data and the webhook log are kept."""

    contact_days: int = _days(
        30, "days after the evening for which a guest's name, contacts and notes are kept"
    )
    attempt_days: int = _days(30, "days to keep delivery attempts")
    attempt_rows: int = _setting(100_000, "maximum number of delivery attempts to keep", _COUNT)
    attempt_megabytes: int = _setting(
        64, "maximum size of the delivery attempts to keep, in megabytes", (1, 10**6)
    )
    answer_days: int = _days(7, "days to keep the responses of successful deliveries")
    dead_days: int = _days(30, "days for which a dead delivery can be replayed")
    security_days: int = _days(180, "days to keep the security log")


@dataclass(frozen=True, slots=True)
class MailSettings:
    """The mail server for emails to guests."""

    host: str = _setting("", "mail server; empty: live sends no email")
    port: int = _setting(587, "mail server's port", (1, 65535))
    security: str = _setting(
        "starttls",
        "starttls, tls or none",
        ("starttls, tls or none", {"starttls", "tls", "none"}.__contains__),
    )
    user: str = _setting("", "user name for the mail server; empty: none")
    password: str = _setting("", "password for the mail server")
    sender: str = _setting("", "From address of emails")
    reminder_hours: int = _setting(
        24, "hours before the evening at which to email a reminder; 0: never", (0, 720)
    )


@dataclass(frozen=True, slots=True)
class DoorSettings:
    """Rules for check-in."""

    early_minutes: int = _setting(
        120, "guests are admitted from this many minutes before their slot", (0, 1440)
    )


@dataclass(frozen=True, slots=True)
class BackupSettings:
    """Where and when backups are made."""

    directory: str = _setting(
        "",
        "folder for backups, such as a USB volume; empty: backups/ in the data directory",
        ("a path from the root such as /mnt/usb", _is_path),
    )
    hour: int = _setting(
        4, "hour of the day, in venue time, of the nightly backup and its trial restore", (0, 23)
    )
    every_minutes: int = _setting(
        15, "minutes between backups while something changes; 0: only at night", (0, 1440)
    )
    target: str = _setting(
        "",
        "where backups are copied to: sftp://user@host/folder, "
        "s3://bucket/folder?endpoint=https://host&region=name, or relay: for the box's relay; "
        "empty: nowhere",
        (
            "sftp://user@host/folder, s3://bucket/folder or relay:, without a password",
            lambda text: not text or is_target(text),
        ),
    )
    target_key: str = _setting("", "access key id of s3 storage")
    target_secret: str = _setting(
        "", "secret access key of s3 storage, or password of the sftp user; empty: the box's key"
    )


@dataclass(frozen=True, slots=True)
class UpdateSettings:
    """Where the box finds new releases of its program."""

    url: str = _setting(
        "",
        "https address of the newest release file, which the portal then offers; empty: none",
        ("an address such as https://example.com/venuebox.release", _is_https_or_empty),
    )
    from_relay: bool = _flag("install signed releases that the operator of the relay stages")


@dataclass(frozen=True, slots=True)
class GuestSettings:
    """Limits for guests."""

    cancel_hours: int = _setting(
        2, "guests may cancel until this many hours before their slot", (0, 720)
    )


@dataclass(frozen=True, slots=True)
class BookingSettings:
    """The booking page and its limits."""

    enabled: bool = _flag("guests may book on the page /book (always allowed in test)")
    open_for_address: int = _setting(
        6, "maximum number of upcoming bookings from one client address", _COUNT
    )
    hourly_for_address: int = _setting(
        12, "maximum number of booking forms per hour from one client address", _COUNT
    )
    hourly: int = _setting(
        120,
        "booking forms per hour in total; above that, only one upcoming booking per client address",
        _COUNT,
    )


@dataclass(frozen=True, slots=True)
class Settings:
    """All validated settings, in the same sections and with the same names as settings.toml."""

    server: ServerSettings = field(default_factory=ServerSettings)
    acme: AcmeSettings = field(default_factory=AcmeSettings)
    api: ApiSettings = field(default_factory=ApiSettings)
    webhooks: WebhookSettings = field(default_factory=WebhookSettings)
    retention: RetentionSettings = field(default_factory=RetentionSettings)
    mail: MailSettings = field(default_factory=MailSettings)
    door: DoorSettings = field(default_factory=DoorSettings)
    backup: BackupSettings = field(default_factory=BackupSettings)
    update: UpdateSettings = field(default_factory=UpdateSettings)
    guest: GuestSettings = field(default_factory=GuestSettings)
    booking: BookingSettings = field(default_factory=BookingSettings)
    readers: tuple[ReaderSettings, ...] = ()


# All sections except `readers`, an array of tables that environment variables cannot set.
_SECTIONS: Mapping[str, Any] = {
    item.name: item.default_factory
    for item in dataclasses.fields(Settings)
    if item.name != "readers"
}


def _declared() -> Iterator[tuple[str, dataclasses.Field[Any]]]:
    for section, kind in _SECTIONS.items():
        for item in dataclasses.fields(kind):
            yield f"{section}.{item.name}", item


RANGES: Mapping[str, tuple[int, int]] = {
    name: item.metadata["allowed"]
    for name, item in _declared()
    if isinstance(item.metadata["allowed"][0], int)
}


def read_settings(file: Path, environ: Mapping[str, str]) -> Settings:
    """Read the settings from `file`, which may be missing, and from environment variables.

    Environment variables take precedence. Raises OperatorError if a setting is invalid. The message
    names the setting, the value and the allowed values.
    """
    try:
        text = file.read_text("utf-8") if file.exists() else ""
    except (OSError, UnicodeDecodeError) as error:
        raise OperatorError(f"{file.name} cannot be read: {error}") from None
    return parse_settings(text, environ, file.name)


def parse_settings(text: str, environ: Mapping[str, str], name: str = "settings.toml") -> Settings:
    """Parse the settings in `text`, the content of the file `name`, and in `environ`.

    Raises OperatorError for the same reasons as `read_settings`.
    """
    try:
        document = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # RecursionError: values nested too deeply
        raise OperatorError(f"{name} cannot be read: {error}") from None
    readers = parse_readers(document.pop("readers", []))
    for section in document:
        if section not in _SECTIONS:
            allowed = ", ".join(_SECTIONS)
            raise OperatorError(f"unknown section [{section}] in {name}. Use one of {allowed}.")
    sections = {
        section: _read_section(section, kind, document.get(section, {}), environ)
        for section, kind in _SECTIONS.items()
    }
    _refuse_unknown_variables(environ)
    if sections["mail"].host and not sections["mail"].sender:
        raise OperatorError(
            "mail.sender is missing. Set it to the From address of the emails, or remove mail.host."
        )
    _check_acme(sections["acme"])
    return Settings(**sections, readers=readers)


def _check_acme(acme: AcmeSettings) -> None:
    if not acme.directory:
        return
    if not acme.agree_terms:
        raise OperatorError(
            "acme.agree_terms is false. Read the authority's terms of service. If you agree, set "
            "it to true; otherwise, remove acme.directory."
        )
    if acme.challenge == "dns-01" and not acme.dns_hook:
        raise OperatorError(
            "acme.dns_hook is missing. Set it to a program that creates the DNS record for dns-01."
        )
    if bool(acme.account_key_id) != bool(acme.account_hmac_key):
        raise OperatorError(
            "only one of acme.account_key_id and acme.account_hmac_key is set. Set both or neither."
        )


def describe_settings() -> list[tuple[str, str, Any, str]]:
    """Return each setting as (section.name, environment variable, default, meaning)."""
    return [
        (name, _variable(*name.split(".")), item.default, item.metadata["meaning"])
        for name, item in _declared()
    ]


def _variable(section: str, name: str) -> str:
    return f"VENUEBOX_{section}_{name}".upper()


def _read_section(section: str, kind: Any, table: Any, environ: Mapping[str, str]) -> Any:
    if not isinstance(table, dict):
        raise OperatorError(
            f"{section} in settings.toml must be a section that starts with [{section}]"
        )
    hints, values = get_type_hints(kind), {}
    for name in table:
        if name not in hints:
            raise OperatorError(f"unknown setting {section}.{name}. Use one of {', '.join(hints)}.")
    for item in dataclasses.fields(kind):
        name, variable = item.name, _variable(section, item.name)
        if variable in environ:
            value = _from_text(hints[name], environ[variable])
        elif name in table:
            value = table[name]
        else:
            continue
        values[name] = _check(f"{section}.{name}", hints[name], value, item.metadata["allowed"])
    return kind(**values)


def _from_text(hint: Any, text: str) -> Any:
    """Convert an environment variable to the type `hint`. If this is impossible, return `text`."""
    if hint is int and re.fullmatch(r"\s*-?[0-9]{1,18}\s*", text):
        return int(text)
    if hint is bool and text.lower() in {"true", "false"}:
        return text.lower() == "true"
    if hint == tuple[str, ...]:
        return [part.strip() for part in text.split(",") if part.strip()]
    return text


def _check(name: str, hint: Any, value: Any, allowed: Any) -> Any:
    """Return `value`, with a list converted to a tuple.

    Raises OperatorError if its type or value is not allowed.
    """
    first, last = allowed
    is_list = isinstance(value, list) and all(isinstance(part, str) for part in value)
    if hint == tuple[str, ...] and is_list:
        value = tuple(value)
    elif type(value) is not hint:
        types = {int: "a whole number", bool: "true or false", str: "text"}
        needed = types.get(hint, "a list of strings")
        raise OperatorError(f"{name} is {value!r}, but must be {needed}")
    if not (last(value) if callable(last) else first <= value <= last):
        needed = first if callable(last) else f"{first} to {last}"
        shown = re.sub(r"(//[^/:@]*):[^/@]*@", r"\1:…@", repr(value))  # hide a password
        raise OperatorError(f"{name} is {shown}, but must be {needed}")
    return value


def _refuse_unknown_variables(environ: Mapping[str, str]) -> None:
    """Raise OperatorError if an environment variable names an unknown setting.

    A variable is ignored if its section does not resemble a known section, as in VENUEBOX_DATA.
    """
    names = {variable for _, variable, _, _ in describe_settings()}
    for variable in environ:
        if variable.startswith("VENUEBOX_") and variable not in names:
            from difflib import get_close_matches  # noqa: PLC0415 - takes 10 ms, rarely needed

            section = variable.split("_")[1].lower()
            if get_close_matches(section, _SECTIONS, cutoff=0.8):
                raise OperatorError(f"unknown setting {variable}. See docs/reference/settings.md.")
