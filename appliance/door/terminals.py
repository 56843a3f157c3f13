"""Terminals: issue, pair, edit and revoke, and limit wrong codes (docs/security.md, S13)."""

import json
from dataclasses import asdict, dataclass
from typing import NamedTuple

from appliance.core.errors import (
    ChangedMeanwhile,
    OperatorError,
    TerminalRevoked,
    TooManyWrongCodes,
)
from appliance.core.tokens import hash_token
from appliance.database.connection import Reader, Transaction, known
from appliance.door.verdict import LANGUAGES
from appliance.outbox import TerminalEdited, TerminalGone
from appliance.staff.audit_log import CONSOLE, NOBODY, record_audit
from appliance.venue.model import fingerprint

ROLES = ("scan", "search", "override")  # each includes the one before
NAME_MAX = 100
PORTAL_TERMINAL_ID = "00000000-0000-7000-8000-00000000da00"  # stands for the portal's check-ins


@dataclass(frozen=True, slots=True)
class Terminal:
    """A row of `terminal`, without its token. `language` is that of its verdicts.

    `version` is the software version that it last reported.
    """

    id: str
    name: str
    role: str
    language: str
    created_at: int
    last_seen_at: int | None
    revoked_at: int | None
    version: str | None = None

    def may(self, role: str) -> bool:
        """Whether the terminal's role includes `role`."""
        return ROLES.index(self.role) >= ROLES.index(role)


MOST_TRIES = 5
_OPEN = "used_at IS NULL AND expires_at > :now"


@dataclass(frozen=True, slots=True)
class Pairing:
    """An open pairing offer, accepted by its link's secret or by its digits."""

    secret_hash: bytes
    code_hash: bytes
    terminal_name: str
    role: str


def add_pairing(tx: Transaction, pairing: Pairing, expires_at: int) -> None:
    """Store an offer until `expires_at` (ms since 1970), and delete used and expired ones."""
    tx.execute(f"DELETE FROM pairing WHERE NOT ({_OPEN})", {"now": tx.now})  # noqa: S608
    tx.insert("pairing", asdict(pairing) | {"expires_at": expires_at})


def find_pairing_by_secret(reader: Reader, secret_hash: bytes) -> Pairing | None:
    """Return the offer of a link, or None if it is unknown, used or expired."""
    return _find(reader, "secret_hash = :hash", secret_hash)


def take_code(tx: Transaction, code_hash: bytes) -> Pairing | None:
    """Return the offer of the digits, or None if unknown, used, expired or after five wrong tries.

    Wrong digits count against every open offer, because the intended one is unknown. After the
    fifth, an offer's digits are refused; its link stays valid.
    """
    found = _find(tx, f"code_hash = :hash AND tries < {MOST_TRIES}", code_hash)
    if found is None:
        sql = f"UPDATE pairing SET tries = tries + 1 WHERE {_OPEN} AND tries < {MOST_TRIES}"  # noqa: S608
        tx.execute(sql, {"now": tx.now})
    return found


@dataclass(frozen=True, slots=True)
class Offer:
    """An offer as shown to its creator. `state` is open, used or over."""

    terminal_name: str
    role: str
    expires_at: int
    state: str


def find_offer(reader: Reader, secret_hash: bytes) -> Offer | None:
    """Return the state of a link's offer; None once it is deleted."""
    sql = f"""SELECT terminal_name, role, expires_at,
                     CASE WHEN used_at IS NOT NULL THEN 'used' WHEN {_OPEN} THEN 'open'
                          ELSE 'over' END
              FROM pairing WHERE secret_hash = :hash"""  # noqa: S608
    return reader.one(Offer, sql, {"hash": secret_hash, "now": reader.now})


def list_open_offers(reader: Reader) -> list[Offer]:
    """Return all open offers, the next to expire first."""
    sql = f"""SELECT terminal_name, role, expires_at, 'open' FROM pairing
              WHERE {_OPEN} ORDER BY expires_at"""  # noqa: S608
    return [Offer(*row) for row in reader.rows(sql, {"now": reader.now})]


def _find(reader: Reader, which: str, found_by: bytes) -> Pairing | None:
    sql = f"""SELECT secret_hash, code_hash, terminal_name, role FROM pairing
              WHERE {which} AND {_OPEN}"""  # noqa: S608 - conditions of this file
    return reader.one(Pairing, sql, {"hash": found_by, "now": reader.now})


_COLUMNS = "id, name, role, language, created_at, last_seen_at, revoked_at, version"
_BY_ID = f"SELECT {_COLUMNS} FROM terminal WHERE id = :id"  # noqa: S608


def find_by_token(reader: Reader, token_hash: bytes) -> Terminal | None:
    """Return the terminal with this token, or None; includes revoked terminals."""
    sql = f"SELECT {_COLUMNS} FROM terminal WHERE token_hash = :hash"  # noqa: S608
    return reader.one(Terminal, sql, {"hash": token_hash})


def get_terminal(reader: Reader, terminal_id: str) -> Terminal:
    """Return the terminal with that id. NotFound if unknown."""
    return known(reader.one(Terminal, _BY_ID, {"id": terminal_id}))


def get_portal_terminal(reader: Reader) -> Terminal | None:
    """Return the terminal of check-ins from the portal, or None before the first one."""
    return reader.one(Terminal, _BY_ID, {"id": PORTAL_TERMINAL_ID})


def insert_portal_terminal(tx: Transaction) -> None:
    """Insert the portal's terminal. It has no token, so no device can use it."""
    tx.insert("terminal", {"id": PORTAL_TERMINAL_ID, "name": "Portail", "created_at": tx.now})


def list_terminals(reader: Reader) -> list[Terminal]:
    """Return all terminals except the portal's, newest last."""
    sql = f"SELECT {_COLUMNS} FROM terminal WHERE id <> :portal ORDER BY created_at, id"  # noqa: S608
    return [Terminal(*row) for row in reader.rows(sql, {"portal": PORTAL_TERMINAL_ID})]


def touch_terminal(tx: Transaction, terminal_id: str, version: str | None = None) -> None:
    """Set `last_seen_at` to now, and `version` if it was reported."""
    sql = """UPDATE terminal SET last_seen_at = :now, version = coalesce(:version, version)
             WHERE id = :id"""
    tx.execute(sql, {"now": tx.now, "id": terminal_id, "version": version})


def list_wrong_codes(reader: Reader, terminal_id: str, *, since: int) -> list[int]:
    """Return the times of wrong codes on a terminal after `since`, in ms since 1970."""
    kept = reader.value("SELECT wrong_codes FROM terminal WHERE id = :id", {"id": terminal_id})
    return [at for at in json.loads(kept or "[]") if since < at <= reader.now]


def issue_terminal(
    tx: Transaction, name: str, role: str = "override", language: str = "fr",
    *, actor: str = CONSOLE,
) -> tuple[str, str]:  # fmt: skip
    """Create a terminal. Returns (id, token). OperatorError for an invalid name, role, language."""
    name = check_terminal(name, role)
    if language not in LANGUAGES:
        raise OperatorError(f"language is {language!r}: {', '.join(LANGUAGES)} are allowed")
    terminal_id, token = tx.new_id(), tx.tokens.new_terminal_token()
    tx.insert(
        "terminal",
        {"id": terminal_id, "name": name, "role": role, "language": language,
         "token_hash": hash_token(token), "created_at": tx.now},
    )  # fmt: skip
    record_audit(tx, actor, "terminal_issued", terminal=terminal_id, name=name, role=role)
    return terminal_id, token


def check_terminal(name: str, role: str) -> str:
    """Return `name` with white space normalised. OperatorError for an invalid name or role."""
    tidy = " ".join(name.split())
    if not 1 <= len(tidy) <= NAME_MAX:
        raise OperatorError(f"a terminal's name has 1 to {NAME_MAX} characters")
    if role not in ROLES:
        raise OperatorError(f"role is {role!r}: {', '.join(ROLES)} are allowed")
    return tidy


def terminal_mark(name: str, role: str) -> str:
    """Return the fingerprint of a terminal that forms carry, to detect changes."""
    return fingerprint((name, role))


def edit_terminal(
    tx: Transaction, terminal_id: str, seen: str, name: str, role: str, *, actor: str = CONSOLE
) -> None:
    """Rename a terminal or change its role. NotFound, ChangedMeanwhile, TerminalRevoked.

    `seen` is the `terminal_mark` that the form showed. The terminal's live feed ends, and it
    reconnects with the new role.
    """
    terminal = get_terminal(tx, terminal_id)
    if terminal.revoked_at is not None:
        raise TerminalRevoked
    if terminal_mark(terminal.name, terminal.role) != seen:
        raise ChangedMeanwhile
    name = check_terminal(name, role)
    record_audit(tx, actor, "terminal_edited", terminal=terminal_id, name=name, role=role)
    tx.update("terminal", terminal_id, name=name, role=role)
    tx.notices.append(TerminalEdited(terminal_id))


def revoke_terminal(tx: Transaction, terminal_id: str, *, actor: str = CONSOLE) -> None:
    """Revoke a terminal permanently. Idempotent. NotFound if unknown."""
    terminal = get_terminal(tx, terminal_id)
    if terminal.revoked_at is None:
        tx.update("terminal", terminal_id, revoked_at=tx.now)
        record_audit(tx, actor, "terminal_revoked", terminal=terminal_id, name=terminal.name)
    tx.notices.append(TerminalGone(terminal_id))


WRONG_CODES_A_MINUTE = 10
_MINUTE = 60_000


def check_wrong_codes(tx: Transaction, terminal: Terminal) -> None:
    """Raise TooManyWrongCodes after ten wrong codes within a minute (docs/security.md, S10)."""
    if is_keyboard_closed(tx, terminal):
        raise TooManyWrongCodes


def is_keyboard_closed(tx: Transaction, terminal: Terminal) -> bool:
    """Whether ten wrong codes were typed on the terminal within the last minute."""
    return len(_recent(tx, terminal)) >= WRONG_CODES_A_MINUTE


def count_wrong_code(tx: Transaction, terminal: Terminal) -> None:
    """Count a wrong code now; simulated scans count too."""
    wrong_codes = json.dumps([*_recent(tx, terminal), tx.now])
    tx.update("terminal", terminal.id, wrong_codes=wrong_codes)


def _recent(tx: Transaction, terminal: Terminal) -> list[int]:
    return list_wrong_codes(tx, terminal.id, since=tx.now - _MINUTE)


PAIRING_LIFE_MS = 10 * 60_000


class Offered(NamedTuple):
    """The secrets of an offer: 256 bits for its link, and eight digits to type."""

    secret: str
    code: str

    def link(self, base: str) -> str:
        """Return the pairing URL. The secret is in the fragment, which browsers do not send."""
        return f"{base}/door#pair={self.secret}"


def offer_pairing(
    tx: Transaction, name: str, role: str = "override", *, actor: str = CONSOLE
) -> Offered:
    """Create an offer, valid once, for ten minutes. OperatorError for an invalid name or role."""
    name = check_terminal(name, role)
    code = tx.tokens.new_pairing_code()
    sql = "SELECT 1 FROM pairing WHERE code_hash = :hash"  # expired offers too
    while tx.row(sql, {"hash": hash_token(code)}) is not None:
        code = tx.tokens.new_pairing_code()
    offered = Offered(tx.tokens.new_link_secret(), code)
    pairing = Pairing(hash_token(offered.secret), hash_token(code), name, role)
    add_pairing(tx, pairing, tx.now + PAIRING_LIFE_MS)
    record_audit(tx, actor, "pairing_offered", name=name, role=role)
    return offered


def pair_by_secret(
    tx: Transaction, secret: str, name: str | None = None, language: str = "fr"
) -> tuple[str, str] | None:
    """Pair by a link's secret. Returns the new terminal's (id, token), or None if it is invalid.

    `name` defaults to the offer's. Wrong secrets are not counted, because 256 bits cannot be
    guessed.
    """
    return _take(tx, find_pairing_by_secret(tx, hash_token(secret)), name, language)


def pair_by_code(
    tx: Transaction, code: str, name: str | None = None, language: str = "fr"
) -> tuple[str, str] | None:
    """Pair by typed digits, as `pair_by_secret`.

    Returns None for wrong digits instead of raising, so that their count is committed.
    """
    return _take(tx, take_code(tx, hash_token(code)), name, language)


def _take(
    tx: Transaction, pairing: Pairing | None, name: str | None, language: str
) -> tuple[str, str] | None:
    if pairing is None:
        return None
    sql = "UPDATE pairing SET used_at = :now WHERE secret_hash = :hash"
    tx.execute(sql, {"now": tx.now, "hash": pairing.secret_hash})
    return issue_terminal(tx, name or pairing.terminal_name, pairing.role, language, actor=NOBODY)
