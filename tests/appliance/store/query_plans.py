"""How SQLite runs the statements of a query or an action."""


async def plans_of(database, action, *arguments):
    """The lines of EXPLAIN QUERY PLAN of each statement that `action(tx, *arguments)` runs."""
    plans = []

    def trace(cursor, sql, bindings):
        explaining = cursor.connection.cursor()
        explaining.exec_trace = None
        if not sql.startswith("EXPLAIN"):
            rows = explaining.execute(f"EXPLAIN QUERY PLAN {sql}", bindings)
            plans.extend(row[3] for row in rows)
        return True

    def explained(tx):
        tx.connection.set_exec_trace(trace)
        try:
            action(tx, *arguments)
        finally:
            tx.connection.set_exec_trace(None)

    await database.write(explained)
    return plans
