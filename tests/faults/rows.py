"""The rows of a box's database, read beside it and by no code of its own."""

from dataclasses import dataclass

import apsw

DELIVERIES = "SELECT id, event_seq, endpoint_id, state, attempts FROM delivery"
RESERVATIONS = """SELECT id, idempotency_key, issued_code, table_id, date, slot, guests, arrived,
                         status, cancelled_at, checked_in_at FROM reservation"""


@dataclass
class Rows:
    """What the checker looks at."""

    reservations: dict  # id -> row
    events: list  # each with its deliveries
    integrity: list
    orphans: list


def read_rows(database):
    """A snapshot of the database file. The box may be running."""
    connection = apsw.Connection(str(database), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        connection.set_busy_timeout(5000)
        connection.execute("BEGIN")
        reservations = select(connection, RESERVATIONS)
        events = select(connection, "SELECT seq, type, reservation_id FROM event")
        deliveries = select(connection, DELIVERIES)
        by_event = {}
        for delivery in deliveries:
            by_event.setdefault(delivery["event_seq"], []).append(delivery)
        return Rows(
            {row["id"]: row for row in reservations},
            [event | {"deliveries": by_event.get(event["seq"], [])} for event in events],
            [row[0] for row in connection.execute("PRAGMA integrity_check")],
            list(connection.execute("PRAGMA foreign_key_check")),
        )
    finally:
        connection.close()


def select(connection, sql):
    """Rows as dictionaries."""
    cursor = connection.cursor()
    cursor.row_trace = lambda c, row: dict(
        zip([column[0] for column in c.get_description()], row, strict=True)
    )
    return list(cursor.execute(sql))
