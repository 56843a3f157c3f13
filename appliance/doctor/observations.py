"""What the running box saw and a check cannot find out again, such as a proxy's headers.

An observation is a row from when the fault begins until it ends or the box stops.
"""

from dataclasses import dataclass

from appliance.database.connection import Reader, Transaction

DAMAGED = "database_damaged"
READER_TROUBLE = "reader_trouble"
PROXY_UNKNOWN, PROXY_SILENT = "proxy_unknown", "proxy_says_nothing"
RELAY_AWAY, RELAY_UNUSABLE = "relay_away", "relay_unusable"


@dataclass(frozen=True, slots=True)
class Observation:
    """A fault that lasts since `since` (ms since 1970). `subject` may be an address."""

    name: str
    subject: str
    since: int
    detail: str


def list_observations(reader: Reader, prefix: str = "") -> list[Observation]:
    """Return the observations whose names begin with `prefix`, oldest first."""
    sql = """SELECT name, subject, since, detail FROM observation
             WHERE name LIKE :prefix || '%' ORDER BY since, name, subject"""
    return [Observation(*row) for row in reader.rows(sql, {"prefix": prefix})]


def observe(tx: Transaction, name: str, detail: str, subject: str = "") -> None:
    """Store a fault that begins now, or delete it if `detail` is empty. `since` is kept."""
    values = {"name": name, "subject": subject, "detail": detail, "now": tx.now}
    tx.execute(
        """INSERT INTO observation (name, subject, since, detail)
           SELECT :name, :subject, :now, :detail WHERE :detail <> ''
           ON CONFLICT (name, subject) DO UPDATE SET detail = :detail""",
        values,
    )
    tx.execute(
        """DELETE FROM observation
           WHERE name = :name AND subject = :subject AND :detail = ''""",
        values,
    )


def forget_observations(tx: Transaction) -> None:
    """Delete what the process saw, except that a database is damaged."""
    tx.execute("DELETE FROM observation WHERE name <> :damaged", {"damaged": DAMAGED})
