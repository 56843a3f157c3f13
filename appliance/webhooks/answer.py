"""Reading a receiver's answer: the status, and enough of the rest to use the connection again."""

import re
from dataclasses import dataclass

HEAD_MAX = 16 * 1024
BODY_MAX = 16 * 1024
_STATUS_LINE = re.compile(rb"HTTP/1\.([01]) ([1-9][0-9]{2})(?: [^\r\n]*)?")
_CHUNK_SIZE = re.compile(rb"([0-9a-fA-F]{1,8})[ \t]*(?:;[^\r\n]*)?\r\n")
_DIGITS_MAX = 18
_DATE_MAX = 64
_WITHOUT_BODY = (204, 205, 304)


class MalformedAnswer(Exception):
    """What came back is not HTTP/1.1, or its head never ends."""


@dataclass(frozen=True, slots=True)
class Head:
    """The head of an answer. `length` None: until the end of the connection, or in chunks.

    `date` is its Date header, as it was written.
    """

    status: int
    length: int | None
    chunked: bool
    keeps_alive: bool
    date: str | None = None


def parse_head(raw: bytes) -> Head:
    """The head in `raw`, without its empty last line; MalformedAnswer when it has no status.

    Anything unclear about the body means that the connection is not used again.
    """
    lines = raw.split(b"\r\n")
    match = _STATUS_LINE.fullmatch(lines[0])
    if match is None:
        raise MalformedAnswer
    status = int(match[2])
    lengths: set[bytes] = set()
    codings: list[bytes] = []
    keeps_alive = match[1] == b"1"
    date: str | None = None
    for line in lines[1:]:
        name, _, value = line.partition(b":")
        lower = name.lower()
        if lower == b"content-length":
            lengths.add(value.strip())
        elif lower == b"transfer-encoding":
            codings.append(value.strip().lower())
        elif lower == b"date":
            date = value[:_DATE_MAX].decode("ascii", "replace").strip()
        elif lower == b"connection" and b"close" in value.lower():
            keeps_alive = False
    chunked = codings == [b"chunked"]
    if status in _WITHOUT_BODY:
        return Head(status, 0, chunked=False, keeps_alive=keeps_alive and not codings, date=date)
    if len(lengths) == 1 and not codings:
        text = lengths.pop()
        if text.isdigit() and len(text) <= _DIGITS_MAX:
            return Head(status, int(text), chunked=False, keeps_alive=keeps_alive, date=date)
    reusable = chunked and not lengths and keeps_alive
    return Head(status, None, chunked=chunked, keeps_alive=reusable, date=date)


def read_chunks(raw: bytes) -> tuple[bytes, int | None]:
    """The content of a chunked body so far, and where it ends; None when it has not.

    MalformedAnswer when it is no chunked body.
    """
    content, position = bytearray(), 0
    while match := _CHUNK_SIZE.match(raw, position):
        size, start = int(match[1], 16), match.end()
        if size == 0:
            return bytes(content), _end_of_trailers(raw, start)
        content += raw[start : start + size]
        position = start + size + 2
        if len(raw) >= position and raw[position - 2 : position] != b"\r\n":
            raise MalformedAnswer
        if len(raw) < position:
            return bytes(content), None
    if b"\r\n" in raw[position:]:
        raise MalformedAnswer
    return bytes(content), None


def _end_of_trailers(raw: bytes, start: int) -> int | None:
    if raw.startswith(b"\r\n", start):
        return start + 2
    end = raw.find(b"\r\n\r\n", start)
    return None if end < 0 else end + 4
