"""Pair, issue, edit and revoke terminals, and limit wrong codes (docs/security.md, S13)."""

import json
from dataclasses import dataclass
from typing import NamedTuple

from msgspec import Struct

from appliance.clock import MINUTE_MS
from appliance.core.errors import ChangedMeanwhile, OperatorError, TerminalRevoked, field_invalid
from appliance.core.text import fold
from appliance.core.tokens import hash_token
from appliance.database.connection import Reader, Transaction, known
from appliance.door.verdict import LANGUAGES
from appliance.outbox import TerminalEdited, TerminalGone
from appliance.staff.audit_log import CONSOLE, record_audit
from appliance.venue.model import fingerprint

ROLES = ("scan", "search", "override")  # each role includes the roles before it
NAME_MAX = 100
# The id of the terminal that stands for the portal in the scan log.
PORTAL_TERMINAL_ID = "00000000-0000-7000-8000-00000000da00"


class Terminal(Struct, frozen=True):
    """A row of `terminal`, without its token. Times are in ms since 1970.

    `language` is the language of the verdicts' messages. `version` is the software version that
    the terminal last reported.
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


_COLUMNS = "id, name, role, language, created_at, last_seen_at, revoked_at, version"


def find_by_token(reader: Reader, token_hash: bytes) -> Terminal | None:
    """Return the terminal with this token, even if it is revoked, or None."""
    sql = f"SELECT {_COLUMNS} FROM terminal WHERE token_hash = :hash"  # noqa: S608
    return reader.one(Terminal, sql, {"hash": token_hash})


def get_terminal(reader: Reader, terminal_id: str) -> Terminal:
    """Return the terminal with this id. Raises NotFound if there is none."""
    sql = f"SELECT {_COLUMNS} FROM terminal WHERE id = :id"  # noqa: S608
    return known(reader.one(Terminal, sql, {"id": terminal_id}))


def get_portal_terminal(tx: Transaction) -> Terminal:
    """Return the terminal that stands for the portal in the scan log. Create it if necessary.

    It has no token, so no device can use it.
    """
    sql = """INSERT INTO terminal (id, name, created_at) VALUES (:id, 'Portail', :now)
             ON CONFLICT DO NOTHING"""
    tx.execute(sql, {"id": PORTAL_TERMINAL_ID, "now": tx.now})
    return get_terminal(tx, PORTAL_TERMINAL_ID)


def list_terminals(reader: Reader) -> list[Terminal]:
    """Return all terminals except the portal's, oldest first."""
    sql = f"SELECT {_COLUMNS} FROM terminal WHERE id <> :portal ORDER BY created_at, id"  # noqa: S608
    return [Terminal(*row) for row in reader.rows(sql, {"portal": PORTAL_TERMINAL_ID})]


def touch_terminal(tx: Transaction, terminal_id: str, version: str | None = None) -> None:
    """Set `last_seen_at` to now, and `version` unless it is None."""
    sql = """UPDATE terminal SET last_seen_at = :now, version = coalesce(:version, version)
             WHERE id = :id"""
    tx.execute(sql, {"now": tx.now, "id": terminal_id, "version": version})


def issue_terminal(
    tx: Transaction, name: str, role: str = "override", language: str = "fr",
    *, actor: str = CONSOLE,
) -> tuple[str, str]:  # fmt: skip
    """Create a terminal and return (id, token).

    Raises OperatorError if the name, role or language is invalid, and ValidationError if another
    terminal has that name.
    """
    name = check_terminal(name, role)
    _check_name_is_free(tx, name)
    if language not in LANGUAGES:
        raise OperatorError(f"language must be one of {', '.join(LANGUAGES)}, not {language!r}")
    terminal_id, token = tx.new_id(), tx.tokens.new_terminal_token()
    tx.insert(
        "terminal",
        {"id": terminal_id, "name": name, "role": role, "language": language,
         "token_hash": hash_token(token), "created_at": tx.now},
    )  # fmt: skip
    record_audit(tx, actor, "terminal_issued", terminal=terminal_id, name=name, role=role)
    return terminal_id, token


def check_terminal(name: str, role: str) -> str:
    """Return `name` with normalised white space.

    Raises OperatorError if the name or role is invalid.
    """
    name = " ".join(name.split())
    if not 1 <= len(name) <= NAME_MAX:
        raise OperatorError(f"a terminal name must be 1 to {NAME_MAX} characters long")
    if role not in ROLES:
        raise OperatorError(f"role must be one of {', '.join(ROLES)}, not {role!r}")
    return name


def _check_name_is_free(tx: Transaction, name: str, but: str = "") -> None:
    """Raise ValidationError if an active terminal has that name. The one with id `but` may."""
    if fold(name) in _names_in_use(tx, but):
        raise field_invalid("name", "another terminal already has this name.")


def _names_in_use(tx: Transaction, but: str = "") -> set[str]:
    """Return the folded names of the active terminals, except of the one with the id `but`."""
    terminals = list_terminals(tx)
    return {fold(one.name) for one in terminals if one.revoked_at is None and one.id != but}


def terminal_mark(name: str, role: str) -> str:
    """Return a fingerprint of a terminal's name and role.

    The form for editing a terminal contains the fingerprint. When the form is submitted, the
    fingerprint shows whether the terminal has changed since the form was opened.
    """
    return fingerprint((name, role))


def edit_terminal(
    tx: Transaction, terminal_id: str, seen: str, name: str, role: str, *, actor: str = CONSOLE
) -> None:
    """Change a terminal's name and role. The terminal must then reconnect to its live feed.

    `seen` is the `terminal_mark` in the form. Raises NotFound if the id is unknown,
    TerminalRevoked if the terminal is revoked, ChangedMeanwhile if its name or role has changed,
    OperatorError if the new name or role is invalid, and ValidationError if another terminal has
    that name.
    """
    terminal = get_terminal(tx, terminal_id)
    if terminal.revoked_at is not None:
        raise TerminalRevoked
    if terminal_mark(terminal.name, terminal.role) != seen:
        raise ChangedMeanwhile
    name = check_terminal(name, role)
    _check_name_is_free(tx, name, but=terminal_id)
    record_audit(tx, actor, "terminal_edited", terminal=terminal_id, name=name, role=role)
    tx.update("terminal", terminal_id, name=name, role=role)
    tx.notices.append(TerminalEdited(terminal_id))


def revoke_terminal(tx: Transaction, terminal_id: str, *, actor: str = CONSOLE) -> None:
    """Revoke a terminal permanently. Idempotent. Raises NotFound if the id is unknown."""
    terminal = get_terminal(tx, terminal_id)
    if terminal.revoked_at is None:
        tx.update("terminal", terminal_id, revoked_at=tx.now)
        record_audit(tx, actor, "terminal_revoked", terminal=terminal_id, name=terminal.name)
    tx.notices.append(TerminalGone(terminal_id))


WRONG_CODES_A_MINUTE = 10


def has_too_many_wrong_codes(tx: Transaction, terminal: Terminal) -> bool:
    """Whether the terminal sent ten wrong codes within the last minute (docs/security.md, S10)."""
    return len(_list_wrong_codes(tx, terminal)) >= WRONG_CODES_A_MINUTE


def count_wrong_code(tx: Transaction, terminal: Terminal) -> None:
    """Record that the terminal sent a wrong code now. Simulated scans count too."""
    wrong_codes = json.dumps([*_list_wrong_codes(tx, terminal), tx.now])
    tx.update("terminal", terminal.id, wrong_codes=wrong_codes)


def _list_wrong_codes(tx: Transaction, terminal: Terminal) -> list[int]:
    """Return the times (ms since 1970) of the terminal's wrong codes in the last minute."""
    stored = tx.value("SELECT wrong_codes FROM terminal WHERE id = :id", {"id": terminal.id})
    return [at for at in json.loads(stored or "[]") if tx.now - MINUTE_MS < at <= tx.now]


PAIRING_LIFE_MS = 10 * 60_000
_MOST_TRIES = 5
_OPEN = "used_at IS NULL AND expires_at > :now"  # true for an open pairing offer
_SELECT_OFFER = f"""
    SELECT terminal_name, role, expires_at,
           CASE WHEN used_at IS NOT NULL THEN 'used' WHEN {_OPEN} THEN 'open' ELSE 'over' END
    FROM pairing
"""  # noqa: S608


@dataclass(frozen=True, slots=True)
class Offer:
    """A pairing offer as its creator sees it. `state` is open, used or over (expired).

    `expires_at` is in ms since 1970.
    """

    terminal_name: str
    role: str
    expires_at: int
    state: str


def find_offer(reader: Reader, secret_hash: bytes) -> Offer | None:
    """Return the offer for the link whose secret has this hash, or None if it was deleted."""
    sql = f"{_SELECT_OFFER} WHERE secret_hash = :hash"
    return reader.one(Offer, sql, {"hash": secret_hash, "now": reader.now})


def list_open_offers(reader: Reader) -> list[Offer]:
    """Return all open pairing offers, sorted by expiry time."""
    sql = f"{_SELECT_OFFER} WHERE {_OPEN} ORDER BY expires_at"
    return [Offer(*row) for row in reader.rows(sql, {"now": reader.now})]


class Offered(NamedTuple):
    """A pairing offer's secrets: 256 bits for its link, and eight digits to type."""

    secret: str
    code: str

    def link(self, base: str) -> str:
        """Return the pairing URL. The secret is in the fragment, which browsers do not send."""
        return f"{base}/door#pair={self.secret}"


def offer_pairing(
    tx: Transaction, name: str, role: str = "override", *, actor: str = CONSOLE
) -> Offered:
    """Create a pairing offer, which can be used once within ten minutes.

    It replaces an open offer for the same name. Raises OperatorError if the name or role is
    invalid, and ValidationError if a terminal has that name.
    """
    name = check_terminal(name, role)
    _check_name_is_free(tx, name)
    code = tx.tokens.new_pairing_code()
    sql = "SELECT 1 FROM pairing WHERE code_hash = :hash"  # also finds used and expired offers
    while tx.row(sql, {"hash": hash_token(code)}) is not None:
        code = tx.tokens.new_pairing_code()
    offered = Offered(tx.tokens.new_link_secret(), code)
    sql = f"DELETE FROM pairing WHERE NOT ({_OPEN}) OR terminal_name = :name"  # noqa: S608
    tx.execute(sql, {"now": tx.now, "name": name})
    tx.insert(
        "pairing",
        {"secret_hash": hash_token(offered.secret), "code_hash": hash_token(code),
         "terminal_name": name, "role": role, "offered_by": actor,
         "expires_at": tx.now + PAIRING_LIFE_MS},
    )  # fmt: skip
    record_audit(tx, actor, "pairing_offered", name=name, role=role)
    return offered


def pair_by_secret(
    tx: Transaction, secret: str, name: str | None = None, language: str = "fr"
) -> tuple[str, str] | None:
    """Use the secret from a link to pair a new terminal. Return the terminal's (id, token).

    Return None if no open offer has this secret. `name` defaults to the name in the offer. Wrong
    secrets are not counted, because 256 bits cannot be guessed.
    """
    return _pair(tx, "secret_hash = :hash", secret, name, language)


def pair_by_code(
    tx: Transaction, code: str, name: str | None = None, language: str = "fr"
) -> tuple[str, str] | None:
    """Use the eight digits that a user typed to pair a new terminal, as in `pair_by_secret()`.

    Wrong digits count against every open offer, because they do not show which offer was meant.
    After five wrong attempts, an offer can no longer be used with its digits, but its link stays
    valid. For wrong digits, this function returns None, because an exception would roll back the
    count.
    """
    paired = _pair(tx, f"code_hash = :hash AND tries < {_MOST_TRIES}", code, name, language)
    if paired is None:
        sql = f"UPDATE pairing SET tries = tries + 1 WHERE {_OPEN} AND tries < {_MOST_TRIES}"  # noqa: S608
        tx.execute(sql, {"now": tx.now})
    return paired


def _pair(
    tx: Transaction, condition: str, secret: str, name: str | None, language: str
) -> tuple[str, str] | None:
    sql = f"""UPDATE pairing SET used_at = :now WHERE {condition} AND {_OPEN}
              RETURNING terminal_name, role, offered_by"""  # noqa: S608
    offer = tx.row(sql, {"hash": hash_token(secret), "now": tx.now})
    if offer is None:
        return None
    terminal_name, role, offered_by = offer
    # Whoever holds the phone cannot see which names are taken, so a name gets a number.
    wanted, taken = name or terminal_name, _names_in_use(tx)
    names = (wanted, *(f"{wanted[: NAME_MAX - 6]} ({n})" for n in range(2, len(taken) + 3)))
    free = next(each for each in names if fold(each) not in taken)
    return issue_terminal(tx, free, role, language, actor=offered_by)
