"""Guest passes as the box itself would show them, signed with its own key and code."""

import datetime as dt
from collections.abc import Iterator
from pathlib import Path

import apsw
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from appliance.core.data_directory import DataDirectory
from appliance.core.tokens import Keyring
from appliance.door.guest_pass import VERSIONS, GuestPass, encode_pass, venue_tag


def write_passes(folder: Path, tonight: dt.date, target: Path) -> Path:
    """One pass text a line, for every reservation of tonight in a stopped live box."""
    directory = DataDirectory(folder)
    keyring = Keyring(directory.master_key(), "live")
    connection = apsw.Connection(str(directory.database("live")), flags=apsw.SQLITE_OPEN_READONLY)
    with target.open("w") as lines:
        lines.writelines(f"{text}\n" for text in _passes(connection, keyring, tonight))
    connection.close()
    return target


def _passes(connection: apsw.Connection, keyring: Keyring, tonight: dt.date) -> Iterator[str]:
    venue_id = str(connection.execute("SELECT id FROM venue").get)
    sql = "SELECT kid, private_key FROM signing_key WHERE retired_at IS NULL"
    kid, wrapped = next(connection.execute(sql))
    private_key = Ed25519PrivateKey.from_private_bytes(keyring.unwrap(wrapped))
    sql = "SELECT pass_id, slot, guests, generation FROM reservation WHERE date = ?"
    for pass_id, slot, guests, generation in connection.execute(sql, (tonight.isoformat(),)):
        yield encode_pass(
            GuestPass(
                VERSIONS["live"], kid, venue_tag(venue_id), pass_id, tonight, slot, guests,
                generation,
            ),
            private_key,
        )  # fmt: skip
