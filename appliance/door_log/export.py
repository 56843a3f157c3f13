"""Write a stretch of the door log out of the box, line by line, and sign what was written."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from appliance.door_log.lines import FIRST_SEAL, Format, write_columns, write_line
from appliance.door_log.statement import FORMAT, Statement, sign_statement
from appliance.model.venue import Venue
from appliance.store.scan_log import LoggedScan, Stretch, follow

_STORED = ("terminal", "staff", "table", "first_name", "access_code", "reason")


@dataclass(frozen=True, slots=True)
class Request:
    """What is to be exported. `types` are the chained columns, `asked` the dates asked for."""

    kind: Format
    environment: str
    venue: Venue
    zone: ZoneInfo
    types: dict[str, str]
    asked: tuple[str | None, str | None]
    stretch: Stretch | None
    now: str


@dataclass(frozen=True, slots=True)
class Exported:
    """What was written, and the first row that does not follow from the one before, or None."""

    count: int
    broken: int | None
    statement: str


def write_export(
    request: Request,
    scans: Iterable[LoggedScan],
    private_key: Ed25519PrivateKey,
    write: Callable[[bytes], object],
    progress: Callable[[int], None] = lambda _: None,
) -> Exported:
    """Write every line; of JSON lines the last is the signed statement.

    Of a CSV the statement belongs into a file beside it. `scans` are read one by one.
    """
    header = _header(request)
    last = request.stretch.previous if request.stretch else None
    if request.kind == "csv":
        line, last_seal = write_columns(header["columns"])
    else:
        line, last_seal = write_line("jsonl", {"header": header}, FIRST_SEAL)
    write(line)
    count, broken, first, final = 0, None, None, None
    for scan in scans:
        if final is not None and scan.seq != final.seq + 1:
            broken, last = broken or scan.seq, None
        if last is not None and follow(last, list(scan.chained)) != scan.hash:
            broken = broken or scan.seq
        line, last_seal = write_line(request.kind, _values(request, scan, last), last_seal)
        write(line)
        first, final, last, count = first or scan, scan, scan.hash, count + 1
        progress(count)
    statement = Statement(
        header=header,
        count=count,
        firstSeq=first.seq if first else None,
        lastSeq=final.seq if final else None,
        firstHash=first.hash.hex() if first else None,
        lastHash=final.hash.hex() if final else None,
        lastSeal=last_seal.hex(),
    )
    signed = sign_statement(statement, private_key)
    if request.kind == "jsonl":
        write(signed.encode() + b"\n")
    return Exported(count, broken, signed)


def _header(request: Request) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "environment": request.environment,
        "venue": {"id": request.venue.id, "name": request.venue.name, "slug": request.venue.slug},
        "timeZone": request.venue.time_zone,
        "from": request.asked[0],
        "to": request.asked[1],
        "exportedAt": request.now,
        "chained": request.types,
        "columns": [
            *request.types,
            *("previous_hash", "hash"),
            *(f"{name}_{place}" for name in _instants(request) for place in ("utc", "venue")),
            *_STORED,
        ],
    }


def _instants(request: Request) -> list[str]:
    """The chained columns that hold an instant: at, device_at, …."""
    return [name for name in request.types if name == "at" or name.endswith("_at")]


def _values(request: Request, scan: LoggedScan, previous: bytes | None) -> dict[str, Any]:
    chained = dict(zip(request.types, scan.chained, strict=True))
    values = {name: _hex(v) if isinstance(v, bytes) else v for name, v in chained.items()}
    values |= {"previous_hash": _hex(previous), "hash": _hex(scan.hash)}
    for name in _instants(request):
        values[f"{name}_utc"] = _tell(chained[name], UTC)
        values[f"{name}_venue"] = _tell(chained[name], request.zone)
    words = (scan.customer_name or "").split(maxsplit=1)
    first_name = words[0] if words else None
    stored = (scan.terminal, scan.staff, scan.table, first_name, scan.access_code, scan.reason)
    return values | dict(zip(_STORED, stored, strict=True))


def _hex(raw: bytes | None) -> str | None:
    return None if raw is None else raw.hex()


def _tell(instant: int | None, zone: Any) -> str | None:
    if instant is None:
        return None
    try:
        told = datetime.fromtimestamp(instant // 1000, UTC).replace(
            microsecond=instant % 1000 * 1000
        )
        return told.astimezone(zone).isoformat(timespec="milliseconds")
    except (OverflowError, ValueError, OSError):  # a terminal may have said anything
        return None
