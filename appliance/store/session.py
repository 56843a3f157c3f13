"""One transaction beside a running box, for commands: the same actions, no event loop."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from appliance.clock import Clock, ZoneDatabase
from appliance.errors import Trouble
from appliance.store.connection import Transaction, open_connection
from appliance.store.log_again import secure_log
from appliance.store.start_check import refuse_damaged_log
from appliance.store.unusable import UNUSABLE, describe_unusable, quota_as_full
from appliance.store.watermark import FilesBeside, Watermark
from appliance.tokens import Tokens


@contextmanager
def session(path: Path, clock: Clock, tokens: Tokens, zones: ZoneDatabase) -> Iterator[Transaction]:
    """A transaction on `path`, committed durably at the end and undone by any exception.

    Waits up to 5 s for the box's own writer. Trouble when the file cannot be used, or its log
    is damaged. The notices of the transaction reach nobody: a running box is poked, and finds
    the rows itself.
    """
    try:
        connection = open_connection(path)
    except UNUSABLE as error:
        raise Trouble(describe_unusable(path, error)) from None
    try:
        refuse_damaged_log(connection, path)
        secure_log(connection, path)
        connection.execute("BEGIN IMMEDIATE")
        try:
            tx = Transaction(connection, clock, zones, tokens)
            yield tx
            with quota_as_full(connection):
                tx.keep()
                connection.execute("COMMIT")
            with closing(FilesBeside(path)) as files:
                Watermark(connection, files).rise()
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
    except UNUSABLE as error:
        raise Trouble(describe_unusable(path, error)) from None
    finally:
        connection.close()
