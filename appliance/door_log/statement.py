"""The signed statement of an exported door log: what it begins with, holds and ends with."""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

FORMAT = "svc-door-log-v1"
STATEMENT_START = b'{"publicKey":'
_MEMBERS = {"header", "count", "firstSeq", "lastSeq", "firstHash", "lastHash", "lastSeal"}


@dataclass(frozen=True, slots=True)
class Statement:
    """What the box says of an export. Hashes are hex, None where there is no scan."""

    header: dict[str, Any]
    count: int
    firstSeq: int | None  # noqa: N815 - the names are those of the file
    lastSeq: int | None  # noqa: N815
    firstHash: str | None  # noqa: N815
    lastHash: str | None  # noqa: N815
    lastSeal: str  # noqa: N815


@dataclass(frozen=True, slots=True)
class SignedStatement:
    """A statement as it was read, whoever signed it."""

    statement: Statement
    public_key: str
    signature: str

    def is_signed_by(self, public_keys: Iterable[bytes]) -> bool:
        """Whether the holder of one of these keys signed exactly this."""
        try:
            signature = bytes.fromhex(self.signature)
        except ValueError:
            return False
        return any(_verifies(key, signature, _signed_bytes(self.statement)) for key in public_keys)


def sign_statement(statement: Statement, private_key: Ed25519PrivateKey) -> str:
    """The statement with its signature, as one line of JSON.

    Ed25519 over the ASCII bytes `svc-door-log-v1` followed by the statement as compact JSON
    with sorted members: the key also signs guest passes, and neither stands for the other.
    """
    return _encode(
        {
            "statement": asdict(statement),
            "publicKey": private_key.public_key().public_bytes_raw().hex(),
            "signature": private_key.sign(_signed_bytes(statement)).hex(),
        }
    )


def read_statement(text: str) -> SignedStatement | None:
    """What `sign_statement` wrote, or None for anything else."""
    try:
        read = json.loads(text)
        given = read["statement"]
        if set(read) != {"statement", "publicKey", "signature"} or set(given) != _MEMBERS:
            return None
        statement, public_key, signature = given, read["publicKey"], read["signature"]
        usable = isinstance(given["header"], dict) and isinstance(given["count"], int)
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    if not (usable and isinstance(public_key, str) and isinstance(signature, str)):
        return None
    return SignedStatement(Statement(**statement), public_key, signature)


def is_header(header: object) -> bool:
    """Whether it says how the lines of an export are to be read."""
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        return False
    chained, columns = header.get("chained"), header.get("columns")
    if not isinstance(chained, dict) or not isinstance(columns, list):
        return False
    known = all(isinstance(name, str) for name in columns)
    return known and {"seq", "previous_hash", "hash", *chained} <= set(columns)


def _signed_bytes(statement: Statement) -> bytes:
    return FORMAT.encode("ascii") + _encode(asdict(statement)).encode()


def _encode(data: dict[str, Any]) -> str:
    return json.dumps(data, sort_keys=True, separators=(",", ":"))


def _verifies(public_key: bytes, signature: bytes, signed: bytes) -> bool:
    try:
        Ed25519PublicKey.from_public_bytes(public_key).verify(signature, signed)
    except InvalidSignature:
        return False
    return True
