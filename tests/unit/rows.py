"""Read the rows that an action has written in the live environment."""


def read(box, sql, **values):
    return box.live.database.peek(lambda reader: list(reader.rows(sql, values)))


def events(box):
    """Return the types of all events except the creation, in order."""
    sql = "SELECT type FROM event WHERE type <> 'reservation.created' ORDER BY seq"
    return [type_ for (type_,) in read(box, sql)]


def history(box):
    """Return the history entries in order: (what, by whom)."""
    return read(box, "SELECT what, actor FROM history ORDER BY seq")


async def execute(box, sql, **values):
    await box.live.database.write(lambda tx: tx.execute(sql, values))
