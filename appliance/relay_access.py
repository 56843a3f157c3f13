"""The box's access to its relay: the relay's address, the box's public name, and its key there.

The relay's client dials with it (web/relay), and so does the backup target `relay:`.
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

from appliance.core import files
from appliance.core.errors import OperatorError

BOX_USER = "box"
"""The SSH user name of a box that is enrolled."""


@dataclass(frozen=True, slots=True)
class RelayAddress:
    """The address at which boxes reach the relay, and the SHA-256 fingerprint of its host key."""

    host: str
    port: int
    fingerprint: str


@dataclass(frozen=True, slots=True)
class Access:
    """What a box keeps in its secrets: the relay, its own public name, and its private key."""

    relay: RelayAddress
    name: str
    key: str

    def save(self, file: Path) -> None:
        """Write it to `file`. Another process then never sees a part of it."""
        files.atomic_write(file, json.dumps(asdict(self)).encode())

    @classmethod
    def load(cls, file: Path) -> Self | None:
        """Read it from `file`; None if the box has joined no relay.

        Raises OperatorError if the file is damaged or readable by other users.
        """
        try:
            fields = json.loads(files.read_private(file))
            return cls(RelayAddress(**fields["relay"]), fields["name"], fields["key"])
        except FileNotFoundError:
            return None
        except (ValueError, TypeError, KeyError):
            raise OperatorError(
                f"{file} is damaged: join the relay again with a new code"
            ) from None


def access_file(root: Path) -> Path:
    """Return the file in the box's data directory that holds its access to the relay."""
    return root / "secrets" / "relay.json"
