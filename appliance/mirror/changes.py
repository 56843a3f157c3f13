"""The box's side of the mirror: which rows changed, how far the mirror is, and the next batch.

Triggers record each changed row in `mirror_change`, in the transaction of the change. A batch reads
the rows as they are now. The token names a state of the mirror: the next one follows from it and
from what was carried. So a box that was restored, or a server that was, is noticed: their tokens
differ, and everything is copied again.
"""

import hashlib
from collections import defaultdict
from dataclasses import dataclass, replace
from typing import Any

from appliance.database.connection import Reader, Transaction
from appliance.mirror.tables import (
    BY_NAME,
    TABLES,
    VENUE_COLUMNS,
    Table,
    select_json,
    triggers,
)

_TRIGGERS = """SELECT name, sql FROM sqlite_schema
    WHERE type = 'trigger' AND name LIKE 'mirror!_%' ESCAPE '!'"""
_MANY = 10_000  # the mirror is never this many changes ahead of its box

Change = tuple[int, str, Any]  # seq, table, id


@dataclass(frozen=True, slots=True)
class Position:
    """How far the mirror is.

    `carried` is the newest `mirror_change.seq` that was copied. While everything is copied,
    `copying` is the table's name, `copied_to` the last id that was copied of it, and `copied` the
    number of rows so far. `copying` is empty afterwards.
    """

    carried: int
    copying: str
    copied_to: str
    copied: int


@dataclass(frozen=True, slots=True)
class State:
    """The row `mirror`. `trouble` is a key of checks.TROUBLES, or empty. Times in ms since 1970."""

    token: str
    position: Position
    trouble: str
    trouble_since: int | None
    carried_at: int | None


@dataclass(frozen=True, slots=True)
class Batch:
    """The content of one transaction, the token before it, and the token and position after it.

    `rows` are JSON lists, `gone` the ids of deleted rows. `page` is set while everything is copied:
    the table, the last id before and the last id of this page. Both may be empty.
    """

    before: str
    token: str
    position: Position
    venue: tuple[Any, ...]  # the id and VENUE_COLUMNS
    rows: list[tuple[Table, str]]
    gone: list[tuple[Table, list[str]]]
    page: tuple[Table, str, str] | None
    is_full: bool


def switch_on(tx: Transaction) -> None:
    """Start to record changes, unless they are already recorded."""
    wanted = triggers()
    if find_state(tx) is not None and dict(tx.rows(_TRIGGERS)) == wanted:
        return
    switch_off(tx)
    for sql in wanted.values():
        tx.execute(sql)
    tx.insert("mirror", {"id": 1, "token": tx.new_id(), "carried": 0, "copying": TABLES[0].name})


def switch_off(tx: Transaction) -> None:
    """Stop recording changes, and delete the recorded ones."""
    for name, _ in list(tx.rows(_TRIGGERS)):
        tx.execute(f"DROP TRIGGER {name}")
    tx.execute("DELETE FROM mirror")
    tx.execute("DELETE FROM mirror_change")


def find_state(reader: Reader) -> State | None:
    """Return the state of the mirror, or None if the box has none."""
    found = reader.row(
        """SELECT token, carried, copying, copied_to, copied, trouble, trouble_since, carried_at
           FROM mirror"""
    )
    return None if found is None else State(found[0], Position(*found[1:5]), *found[5:])


def restart_copy(tx: Transaction) -> State:
    """Start to copy everything, and return the new state. The copy includes all earlier changes."""
    newest = tx.value("SELECT max(seq) FROM mirror_change") or 0
    position = Position(newest, TABLES[0].name, "", 0)
    token = tx.new_id()
    _store(tx, token, position)
    return State(token, position, "", None, None)


def advance(tx: Transaction, batch: Batch) -> None:
    """Store that the batch was copied."""
    _store(tx, batch.token, batch.position)


def _store(tx: Transaction, token: str, position: Position) -> None:
    sql = """UPDATE mirror SET token = :token, carried = :carried, copying = :copying,
             copied_to = :copied_to, copied = :copied, carried_at = :now"""
    tx.execute(sql, {"token": token, "now": tx.now, **_members(position)})
    # Keep the newest change, so that its seq is not reused.
    tx.execute("DELETE FROM mirror_change WHERE seq < :carried", {"carried": position.carried})


def _members(position: Position) -> dict[str, Any]:
    return {name: getattr(position, name) for name in Position.__slots__}


def set_trouble(tx: Transaction, trouble: str) -> None:
    """Store why the mirror cannot be filled, or "" if it can."""
    sql = """UPDATE mirror SET trouble = :trouble, trouble_since = iif(:trouble = '', NULL, :now)
             WHERE trouble <> :trouble"""
    tx.execute(sql, {"trouble": trouble, "now": tx.now})


def count_waiting(reader: Reader) -> int:
    """Return the number of changes that are not copied yet."""
    sql = "SELECT count(*) FROM mirror_change WHERE seq > (SELECT carried FROM mirror)"
    return int(reader.value(sql))


def has_work(reader: Reader) -> bool:
    """Whether something has to be copied."""
    sql = """SELECT copying <> '' OR (SELECT max(seq) FROM mirror_change) > carried FROM mirror"""
    return bool(reader.value(sql))


def count_rows(reader: Reader) -> int:
    """Return the number of rows in a full copy."""
    counts = (reader.value(f"SELECT count(*) FROM {table.source}") for table in TABLES)  # noqa: S608
    return sum(counts)


def find_batch(reader: Reader, size: int, *, contacts: bool) -> Batch | None:
    """Return the next batch, of up to `size` rows or changes, or None if there is nothing."""
    state = find_state(reader)
    if state is None:
        return None
    if state.position.copying:
        return _find_page(reader, state, size, contacts=contacts)
    changes = find_changes(reader, state.position.carried, size)
    if not changes:
        return None
    position = replace(state.position, carried=changes[-1][0])
    ids: dict[str, set[Any]] = defaultdict(set)
    for _, kind, row_id in changes:
        ids[kind].add(row_id)
    rows, gone = [], []
    limits = {"after": state.position.carried, "upto": position.carried}
    for table in TABLES:
        if table.name not in ids:
            continue
        key = table.key.source
        changed = f"""SELECT row_id FROM mirror_change
            WHERE kind = '{table.name}' AND seq > :after AND seq <= :upto"""  # noqa: S608
        selected = f"(SELECT * FROM {table.source} WHERE {key} IN ({changed}))"  # noqa: S608
        sql = select_json(table, selected, contacts=contacts)
        text, count, _ = next(reader.rows(sql, limits))
        if count:
            rows.append((table, text))
        if count < len(ids[table.name]):
            found = {id_ for (id_,) in reader.rows(f"SELECT {key} FROM {selected}", limits)}  # noqa: S608
            gone.append((table, [str(id_) for id_ in ids[table.name] - found]))
    token = successor(state.token, position, changes)
    return Batch(
        state.token, token, position, _venue(reader), rows, gone, None, len(changes) == size
    )


def _find_page(reader: Reader, state: State, size: int, *, contacts: bool) -> Batch:
    at = state.position
    table = BY_NAME[at.copying]
    key = table.key.source
    selected = f"(SELECT * FROM {table.source} WHERE {key} > :after ORDER BY {key} LIMIT :size)"  # noqa: S608
    # SQLite sorts numbers before text, so a number must be compared with a number.
    after: Any = at.copied_to if key == "id" else int(at.copied_to or 0)
    sql = select_json(table, selected, contacts=contacts)
    text, count, last = next(reader.rows(sql, {"after": after, "size": size}))
    position = replace(at, copied=at.copied + count, copied_to=str(last or ""))
    if count < size:
        names = [*BY_NAME, ""]
        copying, last = names[names.index(table.name) + 1], ""
        position = replace(position, copying=copying, copied_to="")
    token = successor(state.token, position, [])
    page = (table, at.copied_to, str(last))
    return Batch(
        state.token, token, position, _venue(reader), [(table, text)], [], page, is_full=True
    )


def find_waiting(reader: Reader, carried: int) -> dict[str, list[str]]:
    """Return the ids of rows that changed since `carried`, by table."""
    sql = "SELECT DISTINCT kind, row_id FROM mirror_change WHERE seq > :carried"
    found: dict[str, list[str]] = defaultdict(list)
    for kind, row_id in reader.rows(sql, {"carried": carried}):
        found[kind].append(str(row_id))
    return found


def find_changes(reader: Reader, after: int, limit: int = _MANY) -> list[Change]:
    """Return up to `limit` changes that follow the one with the seq `after`."""
    sql = """SELECT seq, kind, row_id FROM mirror_change WHERE seq > :after
             ORDER BY seq LIMIT :limit"""
    return list(reader.rows(sql, {"after": after, "limit": limit}))


def successor(token: str, position: Position, changes: list[Change]) -> str:
    """Return the token of the state after `token`, with these `changes` or this page."""
    told = repr((token, *_members(position).values(), changes))
    return hashlib.sha256(told.encode()).hexdigest()[:32]


def find_carried(reader: Reader, token: str, position: Position) -> Batch | None:
    """Return the batch that this box sent before it was killed, without having recorded it.

    `token` and `position` are the mirror's. None if they do not come from this box.
    """
    state = find_state(reader)
    if state is None:
        return None
    before = find_changes(reader, state.position.carried)
    changes = [change for change in before if change[0] <= position.carried]
    if successor(state.token, position, changes) != token:
        return None
    return Batch(state.token, token, position, (), [], [], None, is_full=False)


def _venue(reader: Reader) -> tuple[Any, ...]:
    names = ", ".join(column.name for column in VENUE_COLUMNS)
    return next(reader.rows(f"SELECT id, {names} FROM venue"))  # noqa: S608
