"""Rows of `condition`: what is wrong with the box just now, for whoever looks from outside."""

from collections.abc import Collection
from dataclasses import asdict, dataclass

from appliance.store.connection import Reader, Transaction


@dataclass(frozen=True, slots=True)
class Condition:
    """Something that holds since an instant. `subject` is the id of what it is about, or empty."""

    name: str
    subject: str
    since: int
    detail: str


def list_conditions(reader: Reader) -> list[Condition]:
    """What holds now, the oldest first."""
    sql = "SELECT name, subject, since, detail FROM condition ORDER BY since, name, subject"
    return [Condition(*row) for row in reader.rows(sql)]


def put_condition(tx: Transaction, condition: Condition) -> None:
    """Note that something holds; if it was noted before, it still holds since then."""
    sql = """INSERT INTO condition (name, subject, since, detail)
             VALUES (:name, :subject, :since, :detail)
             ON CONFLICT (name, subject) DO UPDATE SET detail = :detail"""
    tx.execute(sql, asdict(condition))


def drop_condition(tx: Transaction, name: str, subject: str) -> None:
    """Note that something holds no longer."""
    sql = "DELETE FROM condition WHERE name = :name AND subject = :subject"
    tx.execute(sql, {"name": name, "subject": subject})


def drop_conditions(tx: Transaction, names: Collection[str]) -> None:
    """Note that nothing of these names holds, whatever it was about."""
    for name in names:
        tx.execute("DELETE FROM condition WHERE name = :name", {"name": name})
