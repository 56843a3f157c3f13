"""Settings, read from `settings.toml` and `VENUEBOX_SECTION_NAME` environment variables."""

import dataclasses
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any, get_type_hints
from urllib.parse import parse_qsl, urlsplit

import msgspec

from appliance.core.declared_settings import check_setting, checked, one_of, within
from appliance.core.edited_files import decode_edited, parse_edited
from appliance.core.errors import OperatorError
from appliance.core.scanner_settings import ReaderSettings, parse_readers

_TOKEN_LEAST = 16
_NEVER_IN_A_BASE = frozenset(" ?#@<>\"'\\")
_COUNT_MAX = 10**9
_DAYS_MAX = 36_500  # more days would overflow a date
SAVED_FILE = "secrets/portal.json"  # what the portal has stored, with the mail server's password
Document = Mapping[str, Mapping[str, Any]]
_NONE: Document = {}
SSL_MODES = ("verify-full", "verify-ca", "require", "disable")
CHALLENGES = ("tls-alpn-01", "dns-01")


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


def _is_address_or_empty(text: str) -> bool:
    try:
        return not text or not ip_address(text).is_unspecified
    except ValueError:
        return False


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
    """Whether `text` is a valid `backup.target`: sftp://user@host/folder or s3://bucket."""
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


def _is_mirror_or_empty(text: str) -> bool:
    try:
        url = urlsplit(text)
        options = dict(parse_qsl(url.query, strict_parsing=bool(url.query)))
    except ValueError:
        return False
    has_place = bool(url.netloc.rpartition("@")[2] or options.get("host")) and len(url.path) > 1
    is_plain = text.isprintable() and not url.fragment and "@" not in url.path
    is_whole = url.scheme in {"postgresql", "postgres"} and has_place and is_plain
    return not text or (is_whole and options.get("sslmode", SSL_MODES[0]) in SSL_MODES)


def _is_path(text: str) -> bool:
    # The path is written to the systemd unit, where a line break would start another directive.
    return not text or (Path(text).is_absolute() and text.isprintable())


_SYSTEM_FOLDERS = ("/", "/home", "/run", "/var", "/var/lib")
_SYSTEM_TREES = (
    "/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/proc", "/root", "/sbin", "/sys",
    "/usr", "/var/spool",
)  # fmt: skip


def is_system_folder(path: Path) -> bool:
    """Whether the absolute `path` is a folder that a service must not be able to write."""
    plain = Path(os.path.normpath(f"/{str(path).lstrip('/')}"))  # normpath keeps two slashes
    if str(plain) in _SYSTEM_FOLDERS:
        return True
    return any(plain.is_relative_to(tree) for tree in _SYSTEM_TREES)


def _is_backup_folder(text: str) -> bool:
    return _is_path(text) and (not text or not is_system_folder(Path(text)))


# settings.example.toml in this folder says what each setting means.


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """The addresses that the box listens on, and the rules for access."""

    host: str = "0.0.0.0"  # noqa: S104 - the box serves the local network
    port: int = within(8080, 0, 65535)
    app_url: str = checked("", "an address without a path, such as https://box.example", _is_origin)
    house_address: str = checked("", "an IP address such as 192.168.1.20", _is_address_or_empty)
    names: tuple[str, ...] = checked(
        (), "host names without https:// and port, such as box.example", _are_hosts
    )
    trusted_proxies: tuple[str, ...] = checked(
        (), "addresses or networks such as 192.168.1.10 or 10.0.0.0/8", _are_networks
    )
    tls_port: int = within(8443, 0, 65535)
    allow_http: bool = False
    public_portal: bool = True
    mdns: bool = True
    metrics_token: str = checked(
        "", "empty, or at least 16 characters", lambda token: not 0 < len(token) < _TOKEN_LEAST
    )


@dataclass(frozen=True, slots=True)
class AcmeSettings:
    """The ACME authority that issues a public certificate for the host in `server.app_url`."""

    directory: str = checked(
        "",
        "an address such as https://acme-v02.api.letsencrypt.org/directory",
        _is_https_or_empty,
    )
    agree_terms: bool = False
    challenge: str = one_of("tls-alpn-01", *CHALLENGES)
    dns_hook: str = checked("", "an absolute path such as /usr/local/bin/dns-hook", _is_path)
    ca_file: str = checked("", "an absolute path such as /etc/ssl/authority.pem", _is_path)


@dataclass(frozen=True, slots=True)
class ApiSettings:
    """Rate limits for the partner interface."""

    rate_limit_per_minute: int = within(60, 1, _COUNT_MAX)
    unauthenticated_per_minute: int = within(60, 1, _COUNT_MAX)


@dataclass(frozen=True, slots=True)
class WebhookSettings:
    """Which webhook receivers are allowed."""

    allow_networks: tuple[str, ...] = ()
    allow_http: bool = False


@dataclass(frozen=True, slots=True)
class MailSettings:
    """The mail server for emails to guests."""

    host: str = ""
    port: int = within(587, 1, 65535)
    security: str = one_of("starttls", "starttls", "tls", "none")
    user: str = ""
    password: str = ""
    sender: str = ""


@dataclass(frozen=True, slots=True)
class BackupSettings:
    """Where and when backups are made."""

    directory: str = checked(
        "", "an absolute path such as /mnt/usb, outside of system folders", _is_backup_folder
    )
    hour: int = within(4, 0, 23)
    every_minutes: int = within(5, 0, 1440)
    target: str = checked(
        "",
        "sftp://user@host/folder or s3://bucket/folder, without a password",
        lambda text: not text or is_target(text),
    )
    target_key: str = ""
    target_secret: str = ""


@dataclass(frozen=True, slots=True)
class MirrorSettings:
    """The PostgreSQL database that holds a copy of what this and other boxes have."""

    url: str = checked(
        "",
        "an address such as postgresql://user:[password]@db.example/venues",
        _is_mirror_or_empty,
        is_secret=True,
    )
    contacts: bool = False


@dataclass(frozen=True, slots=True)
class UpdateSettings:
    """Where the box finds new releases of its program."""

    url: str = checked(
        "", "an address such as https://example.com/venuebox.release", _is_https_or_empty
    )


@dataclass(frozen=True, slots=True)
class BookingSettings:
    """Limits of the booking page."""

    open_for_guest: int = within(6, 1, _COUNT_MAX)
    open_for_address: int = within(40, 1, _COUNT_MAX)
    hourly_for_address: int = within(40, 1, _COUNT_MAX)
    hourly: int = within(120, 1, _COUNT_MAX)


@dataclass(frozen=True, slots=True)
class Settings:
    """All validated settings, in the same sections and with the same names as settings.toml."""

    server: ServerSettings = field(default_factory=ServerSettings)
    acme: AcmeSettings = field(default_factory=AcmeSettings)
    api: ApiSettings = field(default_factory=ApiSettings)
    webhooks: WebhookSettings = field(default_factory=WebhookSettings)
    mail: MailSettings = field(default_factory=MailSettings)
    backup: BackupSettings = field(default_factory=BackupSettings)
    mirror: MirrorSettings = field(default_factory=MirrorSettings)
    update: UpdateSettings = field(default_factory=UpdateSettings)
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
    name: item.metadata["range"] for name, item in _declared() if "range" in item.metadata
}


def read_settings(file: Path, environ: Mapping[str, str]) -> Settings:
    """Read the settings from `file`, the portal's, and from environment variables.

    `file` may be missing. It goes before the portal's settings, and environment variables go before
    both. Raises OperatorError if a setting is invalid. The message
    names the setting, the value and the allowed values.
    """
    return parse_settings(read_text(file), environ, file.name, read_saved(file))


def read_text(file: Path) -> str:
    """Return the text of `settings.toml`, or "" if it is missing.

    Raises OperatorError if it cannot be read or is not UTF-8.
    """
    try:
        raw = file.read_bytes() if file.exists() else b""
    except OSError as error:
        raise OperatorError(f"{file.name} cannot be read: {error}") from None
    return decode_edited(raw, file.name)


def read_saved(file: Path) -> Document:
    """Return the settings that the portal has stored, by section and name.

    `file` is `settings.toml` in the same data directory. Raises OperatorError if they cannot be
    read.
    """
    saved = file.parent / SAVED_FILE
    try:
        return msgspec.json.decode(saved.read_bytes(), type=dict[str, dict[str, Any]])
    except FileNotFoundError:
        return {}
    except (OSError, msgspec.DecodeError) as error:
        raise OperatorError(f"{SAVED_FILE} cannot be read: {error}") from None


def parse_settings(
    text: str, environ: Mapping[str, str], name: str = "settings.toml", saved: Document = _NONE
) -> Settings:
    """Parse the settings in `text`, the content of the file `name`, in `environ` and in `saved`.

    `environ` goes before `text`, and `text` before `saved`. Raises OperatorError for the same
    reasons as `read_settings`.
    """
    document = parse_edited(text, name)
    readers = parse_readers(document.pop("readers", []))
    for section in document:
        if section not in _SECTIONS:
            allowed = ", ".join(_SECTIONS)
            raise OperatorError(f"unknown section [{section}] in {name}. Use one of {allowed}.")
    sections = {
        section: _read_section(section, kind, document.get(section, {}), environ, saved)
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


def describe_settings() -> list[tuple[str, str, Any]]:
    """Return each setting as (section.name, environment variable, default)."""
    return [(name, variable_of(*name.split(".")), item.default) for name, item in _declared()]


def variable_of(section: str, name: str) -> str:
    """Return the name of the environment variable that sets `section.name`."""
    return f"VENUEBOX_{section}_{name}".upper()


def _read_section(
    section: str, kind: Any, table: Any, environ: Mapping[str, str], saved: Document
) -> Any:
    if not isinstance(table, dict):
        raise OperatorError(
            f"{section} in settings.toml must be a section that starts with [{section}]"
        )
    table = {**saved.get(section, {}), **table}
    hints, values = get_type_hints(kind), {}
    for name in table:
        if name not in hints:
            raise OperatorError(f"unknown setting {section}.{name}. Use one of {', '.join(hints)}.")
    for item in dataclasses.fields(kind):
        name, variable = item.name, variable_of(section, item.name)
        if variable in environ:
            value = _from_text(hints[name], environ[variable])
        elif name in table:
            value = table[name]
        else:
            continue
        values[name] = check_setting(f"{section}.{name}", hints[name], item, value)
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


def _refuse_unknown_variables(environ: Mapping[str, str]) -> None:
    """Raise OperatorError if an environment variable names an unknown setting.

    A variable is ignored if its section does not resemble a known section, as in VENUEBOX_DATA.
    """
    names = {variable for _, variable, _ in describe_settings()}
    for variable in environ:
        if variable.startswith("VENUEBOX_") and variable not in names:
            from difflib import get_close_matches  # noqa: PLC0415 - takes 10 ms, rarely needed

            section = variable.split("_")[1].lower()
            if get_close_matches(section, _SECTIONS, cutoff=0.8):
                raise OperatorError(f"unknown setting {variable}. See docs/reference/settings.md.")
