"""Settings: `settings.toml` and `VENUEBOX_SECTION_NAME`, one frozen value, one clear error."""

import dataclasses
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_type_hints

from appliance.errors import Trouble
from appliance.settings_checks import check_setting
from appliance.settings_readers import ReaderSettings, parse_readers


def _setting(default: Any, meaning: str) -> Any:
    return field(default=default, metadata={"meaning": meaning})


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """Where the box listens and how it is reached."""

    host: str = _setting("0.0.0.0", "address to listen on")  # noqa: S104 - a box serves its LAN
    port: int = _setting(8080, "port to listen on; 0 takes any free one")
    app_url: str = _setting("", "public base URL of guest links; empty: the listening address")
    names: tuple[str, ...] = _setting(
        (), "further host names to accept; requests for other names are refused"
    )
    trusted_proxies: tuple[str, ...] = _setting(
        (), "addresses or networks of proxies whose X-Forwarded-For and -Proto are trusted"
    )
    tls_port: int = _setting(8443, "port for https; 0: none. Not used on a loopback host")
    allow_http: bool = _setting(
        default=False, meaning="accept keys and terminals over plain http from other machines"
    )
    mdns: bool = _setting(default=True, meaning="announce the box as <slug>.local on the LAN")
    metrics_token: str = _setting(
        "", "bearer token for /metrics, at least 16 characters; empty: /metrics is closed"
    )


@dataclass(frozen=True, slots=True)
class ApiSettings:
    """Limits of the partner interface."""

    rate_limit_per_minute: int = _setting(60, "requests a minute for each key")
    unauthenticated_per_minute: int = _setting(
        60, "requests a minute without a valid key, for each client address"
    )


@dataclass(frozen=True, slots=True)
class WebhookSettings:
    """Which receivers may be reached."""

    allow_networks: tuple[str, ...] = _setting(
        (),
        "private addresses or networks open to webhooks, each with an optional :port",
    )
    allow_http: bool = _setting(
        default=False, meaning="allow plain http receivers in live too (test always allows them)"
    )
    clock_grace_minutes: int = _setting(
        10, "minutes after start to wait for a time server before the clock is trusted"
    )


@dataclass(frozen=True, slots=True)
class RetentionSettings:
    """How long guests are known, and the log of webhooks is kept."""

    contact_days: int = _setting(
        30, "days after the evening for which a guest's name, contacts and notes are kept"
    )
    attempt_days: int = _setting(30, "days to keep delivery attempts")
    attempt_rows: int = _setting(100_000, "maximum number of delivery attempts kept")
    attempt_megabytes: int = _setting(64, "maximum size of the attempts kept, in megabytes")
    answer_days: int = _setting(7, "days to keep the responses of successful deliveries")
    dead_days: int = _setting(30, "days in which a dead delivery can be replayed")
    security_days: int = _setting(180, "days to keep the security log")


@dataclass(frozen=True, slots=True)
class MailSettings:
    """The mail server that takes letters to guests."""

    host: str = _setting("", "mail server; empty: live sends no email")
    port: int = _setting(587, "mail server's port")
    security: str = _setting("starttls", "starttls, tls or none")
    user: str = _setting("", "user name at the mail server; empty: none")
    password: str = _setting("", "password at the mail server")
    sender: str = _setting("", "From address of emails")
    reminder_hours: int = _setting(24, "hours before the evening to remind a guest; 0: never")


@dataclass(frozen=True, slots=True)
class DoorSettings:
    """How the door judges."""

    early_minutes: int = _setting(120, "minutes before the slot from which a guest is admitted")


@dataclass(frozen=True, slots=True)
class BackupSettings:
    """Where backups go, and when."""

    directory: str = _setting(
        "", "folder for backups, such as a USB volume; empty: backups/ in the data directory"
    )
    hour: int = _setting(4, "hour of the venue's night in which the backup is made")


@dataclass(frozen=True, slots=True)
class GuestSettings:
    """What guests may do by themselves."""

    cancel_hours: int = _setting(2, "hours before the slot until which a guest may cancel")


@dataclass(frozen=True, slots=True)
class BookingSettings:
    """The booking page."""

    enabled: bool = _setting(
        default=False, meaning="guests may book on the page /book (always allowed in test)"
    )
    open_for_address: int = _setting(6, "upcoming bookings that one client address may hold")
    hourly_for_address: int = _setting(12, "booking forms an hour from one client address")
    hourly: int = _setting(120, "booking forms an hour, above which each address may hold one")


@dataclass(frozen=True, slots=True)
class Settings:
    """Every setting, checked. Section and name are those of settings.toml."""

    server: ServerSettings = field(default_factory=ServerSettings)
    api: ApiSettings = field(default_factory=ApiSettings)
    webhooks: WebhookSettings = field(default_factory=WebhookSettings)
    retention: RetentionSettings = field(default_factory=RetentionSettings)
    mail: MailSettings = field(default_factory=MailSettings)
    door: DoorSettings = field(default_factory=DoorSettings)
    backup: BackupSettings = field(default_factory=BackupSettings)
    guest: GuestSettings = field(default_factory=GuestSettings)
    booking: BookingSettings = field(default_factory=BookingSettings)
    readers: tuple[ReaderSettings, ...] = ()


def read_settings(file: Path, environ: Mapping[str, str]) -> Settings:
    """The settings of `file` (which may be absent), overridden by the environment.

    Trouble names the setting, the value and what is allowed.
    """
    try:
        text = file.read_text("utf-8") if file.exists() else ""
    except (OSError, UnicodeDecodeError) as error:
        raise Trouble(f"{file.name} cannot be read: {error}") from None
    return parse_settings(text, environ, file.name)


def parse_settings(text: str, environ: Mapping[str, str], name: str = "settings.toml") -> Settings:
    """The settings in `text`; Trouble as `read_settings`."""
    try:
        document = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # also a number of 5,000 digits, a deep nest
        raise Trouble(f"{name} cannot be read: {error}") from None
    readers = parse_readers(document.pop("readers", []))
    sections = {f.name: f.default_factory for f in _sections()}
    for section in document:
        if section not in sections:
            raise Trouble(f"unknown section [{section}] in {name}: use {', '.join(sections)}")
    known = {
        section: _read_section(section, kind, document.get(section, {}), environ)
        for section, kind in sections.items()
    }
    _refuse_unknown_variables(known, environ)
    if known["mail"].host and not known["mail"].sender:
        raise Trouble("mail.sender is missing: with mail.host set, letters need a From address")
    return Settings(**known, readers=readers)


def describe_settings() -> list[tuple[str, str, Any, str]]:
    """Each setting as (section.name, environment variable, default, meaning)."""
    rows = []
    for section in _sections():
        kind: Any = section.default_factory
        for item in dataclasses.fields(kind):
            name = f"{section.name}.{item.name}"
            rows.append((name, _variable(section.name, item.name), item.default,
                         item.metadata["meaning"]))  # fmt: skip
    return rows


def _sections() -> list[dataclasses.Field[Any]]:
    """Those of single settings: readers are tables of their own, and no variables."""
    return [f for f in dataclasses.fields(Settings) if f.name != "readers"]


def _variable(section: str, name: str) -> str:
    return f"VENUEBOX_{section}_{name}".upper()


def _read_section(section: str, kind: Any, given: Any, environ: Mapping[str, str]) -> Any:
    if not isinstance(given, dict):
        raise Trouble(f"{section} in settings.toml must be a section: [{section}]")
    hints, values = get_type_hints(kind), {}
    names = [f.name for f in dataclasses.fields(kind)]
    for name in given:
        if name not in names:
            raise Trouble(f"unknown setting {section}.{name}: use {', '.join(names)}")
    for name in names:
        variable = _variable(section, name)
        if variable in environ:
            values[name] = _from_text(f"{section}.{name}", hints[name], environ[variable])
        elif name in given:
            values[name] = _from_toml(f"{section}.{name}", hints[name], given[name])
    for name, value in values.items():
        check_setting(f"{section}.{name}", value)
    return kind(**values)


def _from_text(name: str, hint: Any, text: str) -> Any:
    if hint is int and re.fullmatch(r"\s*-?[0-9]{1,18}\s*", text):
        return int(text)
    if hint is bool and text.lower() in {"true", "false"}:
        return text.lower() == "true"
    if hint is str:
        return text
    if hint == tuple[str, ...]:
        return tuple(part.strip() for part in text.split(",") if part.strip())
    raise _bad(name, text, hint)


def _from_toml(name: str, hint: Any, value: Any) -> Any:
    if hint == tuple[str, ...]:
        if isinstance(value, list) and all(isinstance(part, str) for part in value):
            return tuple(value)
    elif type(value) is hint:
        return value
    raise _bad(name, value, hint)


def _bad(name: str, value: Any, hint: Any) -> Trouble:
    allowed = {int: "a whole number", bool: "true or false", str: "text"}
    return Trouble(f"{name} is {value!r}: {allowed.get(hint, 'a list of texts')} is allowed")


def _refuse_unknown_variables(known: Mapping[str, Any], environ: Mapping[str, str]) -> None:
    """Those of a section of ours, or of what was meant for one: others' tools set some, too."""
    names = {variable for _, variable, _, _ in describe_settings()}
    for variable in environ:
        section = variable.removeprefix("VENUEBOX_").split("_")[0].lower()
        if not variable.startswith("VENUEBOX_") or variable in names:
            continue
        if section in known or _was_meant(section, known):
            raise Trouble(f"unknown setting {variable}: see docs/reference/settings.md")


def _was_meant(section: str, known: Mapping[str, Any]) -> bool:
    """`webhook` for `webhooks`, `mails` for `mail`."""
    from difflib import get_close_matches  # noqa: PLC0415 - most starts can spare its 10 ms

    return bool(get_close_matches(section, known, cutoff=0.8))
