"""The mirrored tables, their columns, and the SQL generated from them.

To mirror another column, add it to TABLES. The next start adds it to the database of the mirror
and copies everything again.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from appliance.database.migrate import newest_schema

SCHEMA = "venuebox"
_NULL, _BETWEEN = 30, 31  # the characters that stand for null and between columns in a row's text


@dataclass(frozen=True, slots=True)
class Kind:
    """A type in PostgreSQL, as `information_schema` names it, and the conversion of values.

    `json` is the type of the value in the JSON that the box sends. `cast` converts it. `text`
    writes the stored value as SQLite writes the box's.
    """

    name: str
    json: str
    cast: str = "{}"
    text: str = "CAST({} AS text)"


_UUID, _NUMBER, _TEXT = Kind("uuid", "uuid"), Kind("bigint", "bigint"), Kind("text", "text")
_FLAG = Kind("boolean", "bigint", "{} <> 0", "CAST(CAST({} AS int) AS text)")
_DATE = Kind("date", "date", "{}", "to_char({}, 'YYYY-MM-DD')")
_INSTANT = Kind(
    "timestamp with time zone", "bigint", "to_timestamp({} / 1000.0)",
    "CAST(CAST(extract(epoch FROM {}) * 1000 AS bigint) AS text)",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Column:
    """A column in PostgreSQL. `source` is the SQL expression in the box."""

    name: str
    kind: Kind
    source: str
    is_contact: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """A table in PostgreSQL, with the primary key `(venue_id, id)`.

    `source` is the table in the box, and `indexed` a column for the owners' queries.
    """

    name: str
    source: str
    key: Column
    columns: tuple[Column, ...]
    indexed: str = ""

    @property
    def all(self) -> tuple[Column, ...]:
        """The columns with the key, but without `venue_id`."""
        return self.key, *self.columns


def _columns(kind: Kind, names: str, *, is_contact: bool = False) -> list[Column]:
    return [Column(name, kind, f'"{name}"', is_contact) for name in names.split()]


_ID = Column("id", _UUID, "id")
# The line of keys of the partner who booked: partner_key.lineage.
_PARTNER = """(SELECT lineage FROM booking_request
    WHERE reservation_seq = reservation.seq AND reservation.source = 'partner')"""

TABLES: tuple[Table, ...] = (
    Table("venue_table", "venue_table", _ID, (
        *_columns(_TEXT, "number name type"),
        *_columns(_NUMBER, "position capacity_min capacity_max minimum_spend"),
        *_columns(_FLAG, "bookable"),
    )),
    Table("slot", "slot", _ID, (
        *_columns(_TEXT, "name start end days_of_week"), *_columns(_NUMBER, "position"),
    )),
    Table("partner_key", "api_key", _ID, (
        *_columns(_UUID, "lineage"), *_columns(_TEXT, "name"),
        *_columns(_INSTANT, "created_at revoked_at"),
    )),
    Table("reservation", "reservation", _ID, (
        *_columns(_TEXT, "status source slot language table_ids"),
        *_columns(_UUID, "table_id"),
        Column("partner", _UUID, _PARTNER),
        *_columns(_DATE, "date"),
        *_columns(_NUMBER, "starts ends guests arrived version"),
        *_columns(_FLAG, "vip no_show walk_in"),
        *_columns(_INSTANT, "created_at updated_at cancelled_at checked_in_at late_at left_at"),
        *_columns(_TEXT, "customer_name customer_email customer_phone notes", is_contact=True),
    ), indexed="date"),
    Table("payment", "payment", _ID, (
        *_columns(_UUID, "reservation_id"), *_columns(_NUMBER, "amount"),
        *_columns(_TEXT, "method staff_id"), *_columns(_INSTANT, "at voided_at"),
    ), indexed="at"),
    Table("scan", "scan_log", Column("id", _NUMBER, "seq"), (
        *_columns(_UUID, "terminal_id reservation_id"), *_columns(_TEXT, "kind result staff_id"),
        *_columns(_NUMBER, "admitted moved undoes"), *_columns(_INSTANT, "at happened_at"),
    ), indexed="at"),
)  # fmt: skip

BY_NAME = {table.name: table for table in TABLES}
# The row of the venue itself, and how far the mirror is.
VENUE_COLUMNS = tuple(_columns(_TEXT, "name slug status currency time_zone evening_ends_at"))
VENUE = Table("venue", "venue", _ID, (
    *VENUE_COLUMNS, *_columns(_TEXT, "token shape copying copied_to"),
    *_columns(_NUMBER, "carried copied"), *_columns(_INSTANT, "mirrored_at"),
))  # fmt: skip


def shape(*, contacts: bool) -> str:
    """Return a text that changes when everything has to be copied again."""
    described = repr((TABLES, newest_schema(), contacts))
    return hashlib.sha256(described.encode()).hexdigest()[:16]


# --- in the box


def triggers() -> dict[str, str]:
    """Return the SQL of the triggers that record changed rows in `mirror_change`, by name."""
    made = {}
    watched = [(table.name, table.source, table.key, table.columns) for table in TABLES]
    for name, source, key, columns in (*watched, ("venue", "venue", _ID, VENUE_COLUMNS)):
        plain = ", ".join(c.source for c in columns if c.source.startswith('"'))
        for event, row in (("INSERT", "NEW"), (f"UPDATE OF {plain}", "NEW"), ("DELETE", "OLD")):
            trigger = f"mirror_{name}_{event.split()[0].lower()}"
            made[trigger] = f"""CREATE TRIGGER {trigger} AFTER {event} ON {source} BEGIN
                INSERT INTO mirror_change (kind, row_id) VALUES ('{name}', {row}.{key.source});
                END"""  # noqa: S608 - constants
    return made


def select_json(table: Table, rows: str, *, contacts: bool) -> str:
    """Return SQL for rows as a JSON list, their number and the last key.

    `rows` is a table or a query in brackets with the columns of `table.source`.
    """
    members = ", ".join(f"'{c.name}', {_source(c, contacts=contacts)}" for c in table.all)
    return f"""SELECT json_group_array(json_object({members})), count(*), max({table.key.source})
        FROM {rows} AS {table.source}"""  # noqa: S608


def select_texts(table: Table, *, contacts: bool) -> str:
    """Return SQL for the key and the text of each row, in the order of keys."""
    key = table.key.source
    texts = (f"CAST({_source(column, contacts=contacts)} AS TEXT)" for column in table.all)
    return f"SELECT {key}, {_joined(texts, 'char')} FROM {table.source} ORDER BY {key}"  # noqa: S608


def _source(column: Column, *, contacts: bool) -> str:
    return "NULL" if column.is_contact and not contacts else column.source


def _joined(texts: Iterable[str], char: str) -> str:
    return f" || {char}({_BETWEEN}) || ".join(f"coalesce({t}, {char}({_NULL}))" for t in texts)


# --- in PostgreSQL


def create() -> list[str]:
    """Return the statements that create the missing parts of the schema."""
    made = [f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}"]
    for table in (*TABLES, VENUE):
        key = table.key.kind.name
        columns = f"venue_id uuid, id {key}, PRIMARY KEY (venue_id, id)"
        if table is VENUE:
            columns = "id uuid PRIMARY KEY"
        made.append(f"CREATE TABLE IF NOT EXISTS {SCHEMA}.{table.name} ({columns})")
        made += (
            f'ALTER TABLE {SCHEMA}.{table.name} ADD COLUMN IF NOT EXISTS "{c.name}" {c.kind.name}'
            for c in table.columns
        )
        if table.indexed:
            name = f"{table.name}_{table.indexed}"
            on = f"{SCHEMA}.{table.name} ({table.indexed}, venue_id)"
            made.append(f"CREATE INDEX IF NOT EXISTS {name} ON {on}")
    return made


def wanted_columns() -> dict[tuple[str, str], str]:
    """Return the type of each (table, column) that the box writes."""
    tables = {(t.name, c.name): c.kind.name for t in (*TABLES, VENUE) for c in t.all}
    return tables | {(table.name, "venue_id"): "uuid" for table in TABLES}


@cache
def upsert(table: Table) -> str:
    """Return SQL that inserts or updates rows. $1 is the venue's id, $2 the rows as JSON."""
    names = ", ".join(f'"{c.name}"' for c in table.all)
    values = ", ".join(c.kind.cast.format(f'r."{c.name}"') for c in table.all)
    types = ", ".join(f'"{c.name}" {c.kind.json}' for c in table.all)
    changes = ", ".join(f'"{c.name}" = excluded."{c.name}"' for c in table.columns)
    return f"""INSERT INTO {SCHEMA}.{table.name} (venue_id, {names})
        SELECT $1::uuid, {values} FROM json_to_recordset($2::json) AS r ({types})
        ON CONFLICT (venue_id, id) DO UPDATE SET {changes}"""  # noqa: S608


def delete(table: Table) -> str:
    """Return SQL that deletes rows. $1 is the venue's id, $2 the list of their ids."""
    ids = f"CAST(CAST($2 AS text[]) AS {table.key.kind.name}[])"
    return f"DELETE FROM {SCHEMA}.{table.name} WHERE venue_id = $1::uuid AND id = ANY ({ids})"  # noqa: S608


def sweep(table: Table, *, has_first: bool, has_last: bool) -> str:
    """Return SQL that deletes rows between two ids which are not in the JSON list.

    $1 is the venue's id, $2 the rows as JSON, and then the id before the first, if any, and the
    last, if any.
    """
    kind, places = table.key.kind.name, iter(("$3", "$4"))
    after = f" AND id > CAST(CAST({next(places)} AS text) AS {kind})" if has_first else ""
    upto = f" AND id <= CAST(CAST({next(places)} AS text) AS {kind})" if has_last else ""
    return f"""DELETE FROM {SCHEMA}.{table.name} WHERE venue_id = $1::uuid{after}{upto}
        AND id NOT IN (SELECT r.id FROM json_to_recordset($2::json) AS r (id {kind}))"""  # noqa: S608


def digest(table: Table) -> str:
    """Return SQL for the number of a venue's rows and the digest of their texts.

    $1 is the venue's id, $2 a list of ids to leave out.
    """
    texts = (c.kind.text.format(f'"{c.name}"') for c in table.all)
    ids = f"CAST(CAST($2 AS text[]) AS {table.key.kind.name}[])"
    return f"""SELECT count(*), md5(coalesce(string_agg(md5({_joined(texts, "chr")}), '' ORDER BY id), ''))
        FROM {SCHEMA}.{table.name} WHERE venue_id = $1::uuid AND id <> ALL ({ids})"""  # noqa: S608, E501
