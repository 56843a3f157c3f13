"""Check an exported door log without the box, or the log in the box itself."""

import json
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from appliance.door_log.findings import Finding, Findings
from appliance.door_log.following import Following
from appliance.door_log.lines import FIRST_SEAL, Format, names_columns, seal, take_apart
from appliance.door_log.statement import (
    STATEMENT_START,
    SignedStatement,
    Statement,
    is_header,
    read_statement,
)
from appliance.model.spreadsheet import BYTE_ORDER_MARK, write_cells
from appliance.store.scan_log import START, LoggedScan, follow

_LONGEST_LINE = 1 << 20
_NOT_OURS = "the signature is not that of this box: the statement was changed or exchanged"
# Which public keys may have signed, given a file's header.
Keys = Callable[[dict[str, Any]], Iterable[bytes]]


@dataclass(frozen=True, slots=True)
class Checked:
    """What a check came to: how many scans there are, and what is wrong with them.

    The `line` of a finding counts from 1, is 0 for the statement beside a CSV, and is the
    scan's number in a database.
    """

    count: int
    statement: Statement | None
    findings: list[Finding]


def statement_file(path: Path) -> Path:
    """Where the signed statement of a CSV lies: beside it."""
    return path.with_name(f"{path.name}.statement.json")


def check_file(path: Path, keys: Keys, progress: Callable[[int], None] = lambda _: None) -> Checked:
    """Check an export line by line. OSError when it cannot be read."""
    with path.open("rb") as file:
        kind: Format = "jsonl" if file.read(1) == b"{" else "csv"
        signed = read_statement(_last_line(file) if kind == "jsonl" else _beside(path))
        file.seek(0)
        findings = Findings()
        checked = _check(kind, _lines(file), signed, keys, findings, progress)
    return Checked(checked, signed.statement if signed else None, findings.in_order())


def check_rows(scans: Iterable[LoggedScan]) -> Checked:
    """Check the log of a database. Where the oldest rows were erased, the first is believed."""
    findings, count, expected = Findings(), 0, 1
    known = {START}
    for scan in scans:
        count += 1
        follows = scan.seq == expected
        if not follows and count > 1:
            one = scan.seq - 1 == expected
            which = f"scan {expected} was" if one else f"scans {expected} to {scan.seq - 1} were"
            findings.add(scan.seq, f"{which} removed before it")
        right = {follow(before, list(scan.chained)) for before in known}
        known = {scan.hash}
        if follows and scan.hash not in right:
            findings.add(scan.seq, f"scan {scan.seq} was changed")
            known |= right  # if its hash alone was changed, the next one is still right
        expected = scan.seq + 1
        if findings.full:
            break
    return Checked(count, None, findings.in_order())


def _check(
    kind: Format,
    lines: Iterator[bytes],
    signed: SignedStatement | None,
    keys: Keys,
    findings: Findings,
    progress: Callable[[int], None],
) -> int:
    """The number of scans."""
    statement_line = 0
    header, seals = _read_first(kind, next(lines, b""), signed, findings)
    if header is None:
        return 0
    genuine = signed is not None and signed.is_signed_by(keys(header))
    said = signed.statement if signed is not None and genuine else None
    following = Following(kind, header["columns"], header["chained"], findings)
    following.begin(seals, said.firstSeq if said and said.header == header else None)
    for number, line in enumerate(lines, 2):
        if kind == "jsonl" and line.startswith(STATEMENT_START):
            statement_line = number
            break
        following.take(number, line)
        progress(following.count)
        if following.is_ruin:
            following.end(None, number)
            return following.count
    end = following.count + 2
    if next(lines, None) is not None:
        findings.add(end + 1, "something was added after the signed statement")
    if kind == "jsonl":
        statement_line = statement_line or end
    if signed is None:
        findings.add(statement_line, "the signed statement is missing: the end was cut off")
        following.end(None, end)
    elif said is None:
        findings.add(statement_line, _NOT_OURS)
        following.end(None, end)
    else:
        _compare(said, header, following, findings, statement_line, end)
    return following.count


def _compare(
    said: Statement,
    header: dict[str, Any],
    following: Following,
    findings: Findings,
    statement_line: int,
    end: int,
) -> None:
    """Whether a genuine statement is that of this file, and nothing is missing at the end."""
    if said.header != header:
        findings.add(statement_line, "the signed statement belongs to another file")
        following.end(None, end)
        return
    following.end(said.lastSeq, end)
    same = (
        said.count == following.count
        and said.firstHash == following.first_hash
        and said.lastHash == following.last_hash
        and following.ends_with(said.lastSeal)
    )
    if not same and not findings.found:
        findings.add(statement_line, "the file is not the one that was signed")


def _read_first(
    kind: Format, line: bytes, signed: SignedStatement | None, findings: Findings
) -> tuple[dict[str, Any] | None, set[bytes]]:
    """The header, and what the line after the first may follow from."""
    known = signed.statement.header if signed and is_header(signed.statement.header) else None
    if kind == "csv":
        text = line.removeprefix(BYTE_ORDER_MARK).removesuffix(b"\n").removesuffix(b"\r")
        if known is None:
            findings.add(0, "the signed statement beside the file is missing or cannot be read")
        elif not names_columns(text, known["columns"]):
            findings.add(1, "the names of the columns were changed")
            text = write_cells([*known["columns"], "seal"])
        return known, {seal(FIRST_SEAL, text)}
    text, stated = take_apart(kind, line)
    right = seal(FIRST_SEAL, text)
    header = _parse_header(text)
    seals = {right} if stated is None else {right, stated}
    if stated == right and header is not None:
        return header, seals
    findings.add(1, "the header was changed" if known or header else "this is no door log")
    return known or header, seals


def _parse_header(text: bytes) -> dict[str, Any] | None:
    try:
        header = json.loads(text + b"}")["header"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return header if is_header(header) else None


def _beside(path: Path) -> str:
    try:
        with statement_file(path).open("rb") as file:
            return file.read(_LONGEST_LINE).decode(errors="replace")
    except OSError:
        return ""


def _last_line(file: BinaryIO) -> str:
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - _LONGEST_LINE))
    return file.read().rstrip(b"\r\n").rpartition(b"\n")[2].decode(errors="replace")


def _lines(file: BinaryIO) -> Iterator[bytes]:
    """The lines; one that is too long for a scan comes in pieces."""
    while line := file.readline(_LONGEST_LINE):
        yield line
