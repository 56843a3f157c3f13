"""Export the scan log as signed JSON lines, which `venuebox doorlog verify` checks, or as CSV.

Each JSON line contains the stored hash of its row. The line ends with a seal, which is the SHA-256
of the previous line's seal and the line's text. The seal covers guests' names. The hash does not
cover them, because names can be erased from the log. The last line is a signed statement.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, BinaryIO, Literal

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from appliance.clock import format_instant
from appliance.core.text import BYTE_ORDER_MARK, write_cell, write_cells
from appliance.core.tokens import Keyring
from appliance.database.connection import Reader
from appliance.door.check_in import follow
from appliance.door.guest_pass import get_signing_key, is_signed
from appliance.door.scan_log import LoggedScan, find_log_range, list_scans, list_types
from appliance.venue.model import evening_end, get_venue

Format = Literal["jsonl", "csv"]
_FORMAT = "svc-door-log-v1"
_PAGE = 1000
_FIRST_SEAL = bytes(32)
_SEALED = re.compile(rb'(?P<text>\{.*),"seal":"(?P<seal>[0-9a-f]{64})"\}')
_STATEMENT_START = b'{"publicKey":'
_LONGEST_LINE = 1 << 20
NOT_AN_EXPORT = "this is not an exported door log (a CSV is not signed)"
_STORED = ("terminal", "staff", "table", "first_name", "access_code", "reason")

# A function that returns the public keys that may have signed a file with the given header.
Keys = Callable[[dict[str, Any]], Iterable[bytes]]


class Export:
    """An export of the evenings from `since` to `until`, both included, written in pages.

    Use a new reader for each page, so that a long export does not keep a read transaction open.
    """

    def __init__(
        self, reader: Reader, environment: str, keyring: Keyring, kind: Format,
        since: date | None, until: date | None,
    ) -> None:  # fmt: skip
        """Prepare an export. `keyring` decrypts the key that signs it.

        If `since` is None, the export starts with the first scan. If `until` is None, it ends with
        the last scan.
        """
        venue = get_venue(reader)
        self._zone = reader.zones.zone(venue.time_zone)

        def end_of(day: date | None) -> int | None:
            return None if day is None else evening_end(day, self._zone, venue.evening_ends_at)

        found = find_log_range(reader, end_of(since and since - timedelta(days=1)), end_of(until))
        self.total = found.last - found.first + 1 if found else 0
        self.count = 0
        self.broken: int | None = None
        self.key: Ed25519PrivateKey = get_signing_key(reader, keyring)[1]
        self._kind = kind
        self._seal = _FIRST_SEAL
        self._previous = found.previous if found else None
        self._after, self._last = (found.first - 1, found.last) if found else (0, 0)
        self._first_row: dict[str, Any] = {}
        self._last_row: dict[str, Any] = {}
        self._types = list_types(reader)
        self._instants = [name for name in self._types if name == "at" or name.endswith("_at")]
        times = [f"{name}_{place}" for name in self._instants for place in ("utc", "venue")]
        self._columns = [*self._types, "previous_hash", "hash", *times, *_STORED]
        self._header = {
            "format": _FORMAT,
            "environment": environment,
            "venue": {"id": venue.id, "name": venue.name, "slug": venue.slug},
            "timeZone": venue.time_zone,
            "from": since and since.isoformat(),
            "to": until and until.isoformat(),
            "exportedAt": format_instant(reader.now),
            "chained": self._types,
            "columns": self._columns,
        }

    def begin(self) -> bytes:
        """Return the first line: the header, or the CSV column names."""
        if self._kind == "csv":
            return BYTE_ORDER_MARK + write_cells(self._columns) + b"\r\n"
        return self._write({"header": self._header})

    def page(self, reader: Reader) -> bytes:
        """Return the lines for the next rows, or `b""` after the last row."""
        scans = list_scans(reader, self._after, self._last, _PAGE)
        self._after = scans[-1].seq if scans else self._last
        return b"".join(self._write_row(scan) for scan in scans)

    def end(self) -> bytes:
        """Return the signed statement, or `b""` for CSV."""
        if self._kind == "csv":
            return b""
        statement = _build_statement(
            self._header, self.count, self._first_row, self._last_row, self._seal
        )
        return sign_statement(statement, self.key)

    def _write_row(self, scan: LoggedScan) -> bytes:
        if self._last_row and scan.seq != self._last_row["seq"] + 1:
            self._previous, self.broken = None, self.broken or scan.seq
        if self._previous and follow(self._previous, list(scan.chained)) != scan.hash:
            self.broken = self.broken or scan.seq
        row = self._values(scan)
        self._previous = scan.hash
        self._first_row, self._last_row = self._first_row or row, row
        self.count += 1
        return self._write(row)

    def _values(self, scan: LoggedScan) -> dict[str, Any]:
        chained = dict(zip(self._types, scan.chained, strict=True))
        values = chained | {"previous_hash": self._previous, "hash": scan.hash}
        values = {name: v.hex() if isinstance(v, bytes) else v for name, v in values.items()}
        for name in self._instants:
            values[f"{name}_utc"] = _format_time(chained[name], UTC)
            values[f"{name}_venue"] = _format_time(chained[name], self._zone)
        terminal, staff, table, customer_name, access_code, reason = scan.names
        first_name = next(iter((customer_name or "").split()), None)
        stored = (terminal, staff, table, first_name, access_code, reason)
        return values | dict(zip(_STORED, stored, strict=True))

    def _write(self, values: dict[str, Any]) -> bytes:
        if self._kind == "csv":
            return write_cells([write_cell(value) for value in values.values()]) + b"\r\n"
        text = json.dumps(values, ensure_ascii=False, separators=(",", ":"))[:-1].encode()
        self._seal = _seal(self._seal, text)
        return text + f',"seal":"{self._seal.hex()}"}}\n'.encode()


@dataclass(frozen=True, slots=True)
class Checked:
    """The result of verifying an export.

    `count` is the number of valid rows. `line` is the number of the first invalid line, or None if
    the export is valid. `problem` says what is wrong with that line.
    """

    count: int
    line: int | None = None
    problem: str = ""


def check_export(  # noqa: PLR0911 - one return for each problem
    file: BinaryIO, keys: Keys
) -> Checked:
    """Verify an export. Stop at the first invalid line."""
    count, number, seal, header = 0, 0, _FIRST_SEAL, None
    first: dict[str, Any] = {}
    last: dict[str, Any] = {}
    # No valid line reaches this limit. A longer line is read in parts, which fail the checks.
    for number, line in enumerate(iter(lambda: file.readline(_LONGEST_LINE), b""), 1):
        if header is not None and line.startswith(_STATEMENT_START):
            statement = _build_statement(header, count, first, last, seal)
            if not _is_signed(line, statement, keys(header)):
                return Checked(count, number, "the signature is invalid, or it is from another box")
            if file.read(1):
                return Checked(count, number + 1, "text was added after the signed statement")
            return Checked(count)
        found = _SEALED.fullmatch(line.rstrip(b"\r\n"))
        values = _read_object(found["text"] + b"}") if found else None
        seal = _seal(seal, found["text"]) if found else seal
        if not found or values is None or seal.hex().encode() != found["seal"]:
            changed = "this line was changed, or an earlier line was removed or added"
            return Checked(count, number, changed if header else NOT_AN_EXPORT)
        if header is None:
            header = values.get("header")
            if not _is_header(header):
                return Checked(count, number, NOT_AN_EXPORT)
        elif not _follows(values, header, last):
            return Checked(count, number, "this scan is out of order, or its hash is wrong")
        else:
            first, last, count = first or values, values, count + 1
    cut_off = "the signed statement is missing, because the end of the file was cut off"
    return Checked(count, number + 1, cut_off if header else NOT_AN_EXPORT)


def sign_statement(statement: dict[str, Any], key: Ed25519PrivateKey) -> bytes:
    """Return the last line of an export, which contains `statement` and its signature.

    The Ed25519 signature covers the ASCII bytes `svc-door-log-v1`, followed by the statement as
    compact JSON with sorted members. The same key also signs guest passes, so the prefix prevents
    one kind of signature from being used as the other.
    """
    signature = key.sign(_FORMAT.encode() + _encode(statement))
    return _statement_line(statement, key.public_key().public_bytes_raw(), signature) + b"\n"


def _build_statement(
    header: dict[str, Any], count: int, first: dict[str, Any], last: dict[str, Any], seal: bytes
) -> dict[str, Any]:
    return {
        "header": header,
        "count": count,
        "firstSeq": first.get("seq"),
        "lastSeq": last.get("seq"),
        "firstHash": first.get("hash"),
        "lastHash": last.get("hash"),
        "lastSeal": seal.hex(),
    }


def _is_signed(line: bytes, statement: dict[str, Any], keys: Iterable[bytes]) -> bool:
    """Whether `line` contains exactly `statement`, signed with one of `keys`."""
    try:
        signature = bytes.fromhex((_read_object(line) or {})["signature"])
    except (KeyError, TypeError, ValueError):
        return False
    for key in keys:
        if is_signed(key, signature, _FORMAT.encode() + _encode(statement)):
            return line.rstrip(b"\r\n") == _statement_line(statement, key, signature)
    return False


def _statement_line(statement: dict[str, Any], key: bytes, signature: bytes) -> bytes:
    return _encode({"statement": statement, "publicKey": key.hex(), "signature": signature.hex()})


def _follows(values: dict[str, Any], header: dict[str, Any], last: dict[str, Any]) -> bool:
    if list(values) != header["columns"]:
        return False
    seq, previous = values["seq"], values["previous_hash"]
    is_next = not last or (seq, previous) == (last["seq"] + 1, last["hash"])
    if not (isinstance(seq, int) and is_next):
        return False
    if previous is None:  # the previous row was deleted, so this row's hash cannot be checked
        return True
    try:
        expected = follow(bytes.fromhex(previous), [values[name] for name in header["chained"]])
    except (TypeError, ValueError):
        return False
    return bool(values["hash"] == expected.hex())


def _is_header(header: object) -> bool:
    """Whether `header` is a valid export header."""
    match header:
        case {"format": str(named), "chained": dict(chained), "columns": list(columns)}:
            known = named == _FORMAT and all(isinstance(name, str) for name in columns)
            return known and {"seq", "previous_hash", "hash", *chained} <= set(columns)
    return False


def _read_object(text: bytes) -> dict[str, Any] | None:
    try:
        read = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return read if isinstance(read, dict) else None


def _seal(previous: bytes, text: bytes) -> bytes:
    return hashlib.sha256(previous + text).digest()


def _encode(data: dict[str, Any]) -> bytes:
    return json.dumps(data, sort_keys=True, separators=(",", ":")).encode()


def _format_time(instant: int | None, zone: Any) -> str | None:
    if instant is None:
        return None
    try:
        time = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=instant)
        return time.astimezone(zone).isoformat(timespec="milliseconds")
    except OverflowError:  # terminals can send any number as their time
        return None
