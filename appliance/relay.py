"""The relay that this box has joined: the line that its operator sends, and the file with it."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import msgspec

from appliance.core.errors import OperatorError
from appliance.core.files import read_private, write_json

_FILE = "relay.json"  # a file in secrets/
_PORTS = ("port", "listen_port")
_LABEL = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_NAME = rf"(?=.{{1,253}}\s*$){_LABEL}(?:\.{_LABEL})+"
_LINE = re.compile(
    r"(?P<user>[a-z_][a-z0-9_-]{0,31})@(?P<host>[A-Za-z0-9.-]+|\[[0-9a-fA-F:.]+\]):(?P<port>[0-9]{1,5})"
    r"\s+(?P<listen_port>[0-9]{1,5})\s+(?P<fingerprint>SHA256:[A-Za-z0-9+/]{43})"
    rf"\s+(?P<name>{_NAME})"
)


@dataclass(frozen=True, slots=True)
class Relay:
    """A relay, and its settings for this box.

    `fingerprint` is that of the relay's host key. The relay passes the connections for the public
    host name `name` to its own port `listen_port`, which the box asks it to forward.
    """

    user: str
    host: str
    port: int
    listen_port: int
    fingerprint: str
    name: str

    @classmethod
    def parse(cls, line: str) -> Self:
        """Parse the line that `venuebox-relay-add` prints on the relay.

        Ignores spaces around it and between its words. Raises OperatorError if it is not such a
        line.
        """
        found = _LINE.fullmatch(line.strip())
        if found is None or not all(0 < int(found[each]) < 65536 for each in _PORTS):
            raise OperatorError(
                "this is not a relay's line, or part of it is missing. Copy the whole line that "
                "venuebox-relay-add printed, from the user's name to this box's name."
            )
        words = found.groupdict()
        return cls(
            words["user"], words["host"].strip("[]"), int(words["port"]),
            int(words["listen_port"]), words["fingerprint"], words["name"],
        )  # fmt: skip

    def save(self, root: Path) -> None:
        """Write this to the data directory `root` atomically."""
        write_json(relay_file(root), self)

    @classmethod
    def load(cls, root: Path) -> Self | None:
        """Read what `save` has written. Returns None if the box has not joined a relay.

        Raises OperatorError if the file is damaged or readable by other users.
        """
        file = relay_file(root)
        try:
            return msgspec.json.decode(read_private(file), type=cls)
        except FileNotFoundError:
            return None
        except ValueError:
            raise OperatorError(
                f"{file} is damaged. Join the relay again with the line that its operator sent."
            ) from None


def relay_file(root: Path) -> Path:
    """Return the path of the file that `Relay.save` writes."""
    return root / "secrets" / _FILE
