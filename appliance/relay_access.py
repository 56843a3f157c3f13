"""The box's access to its relay: the relay's address, the box's public name, and its private key.

The relay client (web/relay) and the backup target `relay:` use this access to connect.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

import msgspec

from appliance.core import files
from appliance.core.errors import OperatorError

if TYPE_CHECKING:
    import asyncssh

BOX_USER = "box"
"""The SSH user name of an enrolled box."""


@dataclass(frozen=True, slots=True)
class RelayAddress:
    """The relay's address for boxes, and the SHA-256 fingerprint of the relay's host key."""

    host: str
    port: int
    fingerprint: str

    def has_key(self, key: "asyncssh.SSHKey") -> bool:
        """Return whether `key` is the relay's host key."""
        return bool(key.get_fingerprint() == self.fingerprint)


@dataclass(frozen=True, slots=True)
class Access:
    """The relay's address, the box's public host name, and the box's private key."""

    relay: RelayAddress
    name: str
    key: str

    def save(self, file: Path) -> None:
        """Write the credentials for the relay to `file` atomically."""
        files.write_json(file, self)

    @classmethod
    def load(cls, file: Path) -> Self | None:
        """Read the access from `file`. Returns None if the box has not joined a relay.

        Raises OperatorError if the file is damaged or readable by other users.
        """
        try:
            return msgspec.json.decode(files.read_private(file), type=cls)
        except FileNotFoundError:
            return None
        except ValueError:
            raise OperatorError(
                f"{file} is damaged. Join the relay again with a new code."
            ) from None


def access_file(root: Path) -> Path:
    """Return the path of the file that stores the box's credentials for the relay."""
    return root / "secrets" / "relay.json"
