"""The lines of an exported door log, as JSON and as CSV: written, sealed and read again.

Each line ends with its seal, SHA-256 over the seal before and its own text: it covers the names
beside the chained fields too, which the hash of the log leaves out so that they can be erased.
"""

import csv
import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any, Literal

from appliance.model.spreadsheet import (
    BYTE_ORDER_MARK,
    read_cell,
    read_cells,
    write_cell,
    write_cells,
)

Format = Literal["jsonl", "csv"]
FIRST_SEAL = bytes(32)
_SEALED = {
    "jsonl": re.compile(rb'(?P<text>\{.*),"seal":"(?P<seal>[0-9a-f]{64})"\}'),
    # Earlier exports have commas, and no quotes here.
    "csv": re.compile(
        rb'(?P<text>(?P<quote>")?+.*)(?(quote);"|,)(?P<seal>[0-9a-f]{64})(?(quote)"|)'
    ),
}
_ENDS = {"jsonl": b"\n", "csv": b"\r\n"}

_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def seal(previous: bytes, text: bytes) -> bytes:
    """The seal of a line whose text, without its seal, is `text`."""
    return hashlib.sha256(previous + text).digest()


def write_line(kind: Format, values: Mapping[str, Any], previous: bytes) -> tuple[bytes, bytes]:
    """A whole line with its end, and its seal."""
    if kind == "jsonl":
        text = _encode(values)[:-1].encode()
        found = seal(previous, text)
        return text + f',"seal":"{found.hex()}"}}'.encode() + _ENDS[kind], found
    text = write_cells([write_cell(value) for value in values.values()])
    found = seal(previous, text)
    return text + f';"{found.hex()}"'.encode() + _ENDS[kind], found


def write_columns(columns: list[str]) -> tuple[bytes, bytes]:
    """The first line of a CSV file, and the seal that the next one follows from."""
    text = write_cells([*columns, "seal"])
    return BYTE_ORDER_MARK + text + _ENDS["csv"], seal(FIRST_SEAL, text)


def names_columns(text: bytes, columns: list[str]) -> bool:
    """Whether the first line of a CSV file names these."""
    try:
        return read_cells(text) == [*columns, "seal"]
    except (ValueError, csv.Error):
        return False


def take_apart(kind: Format, line: bytes) -> tuple[bytes, bytes | None]:
    """The text of a line without its end, and its seal; None when it has none."""
    bare = line.removesuffix(b"\n").removesuffix(b"\r")
    found = _SEALED[kind].fullmatch(bare)
    return (bare, None) if found is None else (found["text"], bytes.fromhex(found["seal"].decode()))


def read_values(
    kind: Format, text: bytes, columns: list[str], types: Mapping[str, str]
) -> dict[str, Any] | None:
    """The values of a line, or None when it does not have exactly these columns.

    `types` tells which are chained, and of what type: in CSV everything is text.
    """
    try:
        if kind == "jsonl":
            read = json.loads(text + b"}")
            return read if isinstance(read, dict) and list(read) == columns else None
        cells = read_cells(text)
        if len(cells) != len(columns):
            return None
        return {
            name: _read_cell(cell, types.get(name, "TEXT"))
            for name, cell in zip(columns, cells, strict=True)
        }
    except (ValueError, RecursionError, csv.Error):
        return None


def _read_cell(cell: str, kind: str) -> Any:
    if not cell:
        return None
    text = read_cell(cell)
    return int(text) if kind == "INTEGER" else text
