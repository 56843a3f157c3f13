"""Issue a terminal: its token is shown once and stored as its SHA-256."""

from appliance.actions.note_security import CONSOLE, note_security
from appliance.errors import Trouble
from appliance.model.terminal import NAME_MAX, ROLES
from appliance.model.verdict_sentences import LANGUAGES
from appliance.store.connection import Transaction
from appliance.tokens import hash_token


def issue_terminal(
    tx: Transaction, name: str, role: str = "override", language: str = "fr",
    *, actor: str = CONSOLE,
) -> tuple[str, str]:  # fmt: skip
    """A terminal ready to scan: (its id, its token). Trouble names what cannot be."""
    name = check_terminal(name, role)
    if language not in LANGUAGES:
        raise Trouble(f"language is {language!r}: {', '.join(LANGUAGES)} are allowed")
    terminal_id, token = tx.new_id(), tx.tokens.new_terminal_token()
    tx.insert(
        "terminal",
        {"id": terminal_id, "name": name, "role": role, "language": language,
         "token_hash": hash_token(token), "created_at": tx.now},
    )  # fmt: skip
    note_security(tx, actor, "terminal_issued", terminal=terminal_id, name=name, role=role)
    return terminal_id, token


def check_terminal(name: str, role: str) -> str:
    """`name` without needless space; Trouble when a terminal cannot have that name or role."""
    tidy = " ".join(name.split())
    if not 1 <= len(tidy) <= NAME_MAX:
        raise Trouble(f"a terminal's name has 1 to {NAME_MAX} characters")
    if role not in ROLES:
        raise Trouble(f"role is {role!r}: {', '.join(ROLES)} are allowed")
    return tidy
