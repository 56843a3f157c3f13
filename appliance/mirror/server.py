"""The mirror's database: connect, create the schema, copy a batch, and name errors."""

import asyncio
import os
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qs, urlsplit

from appliance.core.files import name_user
from appliance.mirror.changes import Batch, Position
from appliance.mirror.tables import (
    SCHEMA,
    TABLES,
    VENUE,
    VENUE_COLUMNS,
    create,
    delete,
    digest,
    sweep,
    upsert,
    wanted_columns,
)

_CONNECT_SECONDS = 10.0
ANSWER_SECONDS = 30.0  # time limit for a batch, a digest, or the schema
# The server enforces these limits, so that a box that disappears holds no lock.
_LIMITS = """BEGIN; SET LOCAL statement_timeout = '25s'; SET LOCAL lock_timeout = '10s';
    SET LOCAL idle_in_transaction_session_timeout = '60s'"""
_TRIES = 5  # several boxes may create the schema at once

# Maps prefixes of SQLSTATE codes to troubles. The longest prefix comes first.
_BY_SQLSTATE = {
    "25006": "read_only", "28": "refused", "3D": "refused", "42501": "forbidden", "53100": "full",
    "53200": "full", "53": "busy", "22": "schema", "23": "schema", "3F": "schema", "42": "schema",
    "08": "unreachable", "57P": "unreachable", "55": "busy", "57": "busy", "40": "busy",
}  # fmt: skip


class Trouble(Exception):
    """The mirror cannot be reached or filled. `name` is a key of `checks.TROUBLES`.

    `detail` is for the log: never the server's message, which may quote rows.
    """

    def __init__(self, name: str, detail: str = "") -> None:
        super().__init__(f"{name} ({detail})" if detail else name)
        self.name = name


def server_name(url: str) -> str:
    """Return the host of `mirror.url`, or the folder of its socket: never the password."""
    return urlsplit(url).netloc.rpartition("@")[2] or _option(url, "host") or "localhost"


def _option(url: str, name: str) -> str:
    return parse_qs(urlsplit(url).query).get(name, [""])[0]


def _user(url: str) -> str | None:
    """Return the process's user if the URL names none. In `USER`, sudo leaves another name."""
    named = urlsplit(url).username or _option(url, "user")
    return None if named else name_user(os.geteuid())


async def _tls(url: str) -> ssl.SSLContext | bool:
    """Return the TLS context that `mirror.url` requires, or False for a connection without TLS."""
    mode = _option(url, "sslmode") or "verify-full"
    is_socket = not urlsplit(url).netloc.rpartition("@")[2]
    is_socket = is_socket and _option(url, "host").startswith(("/", ""))
    if mode == "disable" or is_socket:
        return False
    authority = _option(url, "sslrootcert") or None
    context = await asyncio.to_thread(ssl.create_default_context, cafile=authority)
    if mode in {"require", "verify-ca"}:
        context.check_hostname = False
    if mode == "require":
        context.verify_mode = ssl.CERT_NONE
    return context


@asynccontextmanager
async def connected(url: str) -> AsyncIterator["Session"]:
    """Connect for the duration of the block. Raises Trouble for every error in it."""
    import asyncpg  # noqa: PLC0415 - 60 ms that only a box with a mirror spends

    connection = None
    try:
        connection = await asyncpg.connect(
            url, user=_user(url), ssl=await _tls(url),
            timeout=_CONNECT_SECONDS, command_timeout=ANSWER_SECONDS,
            statement_cache_size=0,  # there may be a pooler such as PgBouncer in between
            server_settings={"application_name": "venuebox"},
        )  # fmt: skip
        yield Session(connection)
        async with asyncio.timeout(2):
            await connection.close()
    except asyncpg.PostgresError as error:
        state = error.sqlstate or ""
        names = (name for start, name in _BY_SQLSTATE.items() if state.startswith(start))
        raise Trouble(next(names, "failed"), f"SQLSTATE {state}") from None
    except ssl.SSLError as error:
        raise Trouble("certificate", error.reason or "") from None
    except ConnectionError as error:
        is_plain = "SSL" in str(error)  # asyncpg's message if the server has no TLS
        raise Trouble("certificate" if is_plain else "unreachable") from None
    except (OSError, TimeoutError) as error:
        raise Trouble("unreachable", type(error).__name__) from None
    except (asyncpg.InterfaceError, asyncpg.InternalClientError) as error:
        raise Trouble("failed", type(error).__name__) from None
    finally:
        if connection is not None:
            connection.terminate()  # does not wait for the server


class Session:
    """A connection to the mirror. Every method raises what `connected` turns into Trouble."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    @asynccontextmanager
    async def _transaction(self) -> AsyncIterator[Callable[..., Awaitable[Any]]]:
        """Yield `execute` in a transaction. It is never rolled back: a failure ends the connection.

        Single queries run in a transaction too, because a pooler may send their two halves to
        different connections otherwise.
        """
        async with asyncio.timeout(ANSWER_SECONDS):
            await self._connection.execute(_LIMITS)
            yield self._connection.execute
            await self._connection.execute("COMMIT")

    async def prepare(self) -> None:
        """Create the missing parts of the schema. Raises Trouble if it is another schema."""
        for attempt in range(_TRIES):
            missing = await self._missing()
            if not missing:
                return
            await asyncio.sleep(attempt * 0.2)
            await self._create()
        raise Trouble("schema", ", ".join(sorted(f"{table}.{name}" for table, name in missing)))

    async def _missing(self) -> set[tuple[str, str]]:
        sql = """SELECT table_name, column_name, data_type FROM information_schema.columns
                 WHERE table_schema = $1"""
        async with self._transaction():
            rows = await self._connection.fetch(sql, SCHEMA)
        found = {(row[0], row[1]): row[2] for row in rows}
        wanted = wanted_columns()
        wrong = [f"{t}.{c}" for (t, c), kind in wanted.items() if found.get((t, c), kind) != kind]
        if wrong:
            raise Trouble("schema", ", ".join(sorted(wrong)))
        return wanted.keys() - found.keys()

    async def _create(self) -> None:
        import asyncpg  # noqa: PLC0415 - as in `connected`

        try:
            await self._connection.execute("; ".join(create()))
        except (
            asyncpg.UniqueViolationError, asyncpg.DuplicateTableError, asyncpg.DuplicateColumnError,
            asyncpg.DuplicateSchemaError, asyncpg.DeadlockDetectedError,
            asyncpg.InternalServerError,  # "tuple concurrently updated"
        ):  # fmt: skip
            return  # another box created it at the same time, so check again

    async def find_state(self, venue_id: str) -> tuple[str, str, Position] | None:
        """Return the shape, token and position of the venue's mirror, or None if it has none."""
        async with self._transaction():
            return await self._find_state(venue_id)

    async def _find_state(self, venue_id: str) -> tuple[str, str, Position] | None:
        sql = f"""SELECT shape, token, carried, copying, copied_to, copied
                  FROM {SCHEMA}.venue WHERE id = $1::uuid"""  # noqa: S608
        row = await self._connection.fetchrow(sql, venue_id)
        return None if row is None else (row[0], row[1], Position(*row[2:]))

    async def begin_copy(self, venue_id: str, shape: str, token: str, position: Position) -> None:
        """Record that everything is copied again. Rows stay until the copy reaches them."""
        sql = f"""INSERT INTO {SCHEMA}.venue (id, shape, token, carried, copying, copied_to, copied)
            VALUES ($1::uuid, $2, $3, $4, $5, $6, $7) ON CONFLICT (id) DO UPDATE SET
            shape = $2, token = $3, carried = $4, copying = $5, copied_to = $6, copied = $7"""  # noqa: S608
        values = (position.carried, position.copying, position.copied_to, position.copied)
        async with self._transaction() as execute:
            await execute(sql, venue_id, shape, token, *values)

    async def carry(self, batch: Batch) -> None:
        """Write the batch in one transaction. Raises Trouble if the mirror is in another state."""
        names = ", ".join(f'"{c.name}" = ${n}' for n, c in enumerate(VENUE_COLUMNS, 8))
        sql = f"""UPDATE {SCHEMA}.{VENUE.name} SET token = $3, carried = $4, copying = $5,
            copied_to = $6, copied = $7, mirrored_at = now(), {names}
            WHERE id = $1::uuid AND token = $2"""  # noqa: S608
        at, venue_id = batch.position, batch.venue[0]
        values = (batch.token, at.carried, at.copying, at.copied_to, at.copied, *batch.venue[1:])
        async with self._transaction() as execute:
            if await execute(sql, venue_id, batch.before, *values) != "UPDATE 1":
                raise Trouble("other_box")
            for table, ids in batch.gone:
                await execute(delete(table), venue_id, ids)
            for table, rows in batch.rows:
                await execute(upsert(table), venue_id, rows)
            if batch.page is not None:
                table, *ids = batch.page
                swept = sweep(table, has_first=bool(ids[0]), has_last=bool(ids[1]))
                await execute(swept, venue_id, batch.rows[0][1], *filter(None, ids))

    async def digests(
        self, venue_id: str, token: str, left_out: Mapping[str, Sequence[str]]
    ) -> dict[str, tuple[int, str]] | None:
        """Return for each table the number of rows and their digest. None: the token differs.

        `left_out` are ids of rows that do not count, by table.
        """
        await self._connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        state = await self._find_state(venue_id)
        if state is None or state[1] != token:
            return None
        found = {}
        for table in TABLES:
            ids = left_out.get(table.name, ())
            row = await self._connection.fetchrow(digest(table), venue_id, ids)
            found[table.name] = (int(row[0]), str(row[1]))
        return found
