"""Enrolled boxes and invitations, each stored as one file in the relay's data directory.

An invitation is a one-time code that the owner of a box types in. It contains the relay's address,
the fingerprint of its host key, the public name of the box, and a secret. The relay stores only a
hash of the secret. Files are written atomically, so commands can change them while the relay runs.
"""

import base64
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Self, TypeVar

import msgspec

from appliance.core.errors import OperatorError
from appliance.core.files import PART, make_folder, read_json, sync, write_json
from appliance.relay_access import RelayAddress
from web.relay.hello import is_name

T = TypeVar("T")
TLS_PORT, HTTP_PORT = 443, 80
"""The ports in a box's forwarding requests. They stand for https and plain http. The relay may
listen on other ports."""
JOIN_USER = "join-"
"""The beginning of the SSH user name of a box that joins. The invitation's secret follows. SSH
sends the user name encrypted, after the relay has proved its host key."""
_PREFIX = "vbrelay-"
# The fields of a code: the relay's host, port and fingerprint, the box's name, and the secret.
_Fields = tuple[str, int, str, str, str]
_NO_FIELDS: _Fields = ("", 0, "", "", "")
SECRET_BYTES = 16


@dataclass(frozen=True, slots=True)
class Invitation:
    """The content of a code: the relay, the box's public host name, and the one-time secret."""

    relay: RelayAddress
    name: str
    secret: str

    def encode(self) -> str:
        """Return the code: letters, digits, `-` and `_` only."""
        fields = [self.relay.host, self.relay.port, self.relay.fingerprint, self.name, self.secret]
        packed = base64.urlsafe_b64encode(msgspec.json.encode(fields))
        return _PREFIX + packed.decode().rstrip("=")

    @classmethod
    def decode(cls, code: str) -> Self:
        """Parse a code. Ignores spaces and line breaks. Raises OperatorError if it is invalid."""
        compact = "".join(code.split())
        packed = compact.removeprefix(_PREFIX)
        try:
            fields = base64.b64decode(packed + "=" * (-len(packed) % 4), b"-_")
            host, port, fingerprint, name, secret = msgspec.json.decode(fields, type=_Fields)
        except (ValueError, RecursionError):  # the errors of both decoders are ValueErrors
            host, port, fingerprint, name, secret = _NO_FIELDS
        texts = (host, fingerprint, name, secret)
        if not (all(map(str.isprintable, texts)) and 0 < port < 65536 and is_name(name)):
            raise OperatorError(
                "this is not a relay's code, or part of it is missing. Copy the whole line that "
                "venuebox relay invite printed."
            )
        return cls(RelayAddress(host, port, fingerprint), name, secret)


@dataclass(frozen=True, slots=True)
class EnrolledBox:
    """A box that is enrolled under `name`. `key` is its public key in OpenSSH's format."""

    name: str
    key: str
    enrolled_at: int


@dataclass(frozen=True, slots=True)
class PendingInvitation:
    """An invitation that has not been used. `ends_at` is in ms since 1970."""

    name: str
    secret_hash: str
    ends_at: int


class Enrolments:
    """The enrolled boxes and the invitations in the relay's data directory."""

    def __init__(self, root: Path) -> None:
        self._boxes, self._invitations = root / "boxes", root / "invitations"
        self._address = root / "address.json"
        # `backups` contains a subfolder for each box, named after the box. `releases` contains the
        # releases that are offered to boxes.
        self.backups, self.releases = root / "backups", root / "releases"

    def make_folders(self) -> None:
        """Create the folders, readable only by this user."""
        for folder in (self._boxes, self._invitations):
            make_folder(folder)

    def set_address(self, address: RelayAddress) -> None:
        """Store the relay's address, which invitations contain."""
        write_json(self._address, address)

    def address(self) -> RelayAddress:
        """Return the relay's address. Raises OperatorError if no relay has run here."""
        found = read_json(self._address, RelayAddress)
        if found is None:
            raise OperatorError(
                "no relay has run in this directory yet. Run venuebox relay serve first, or "
                "specify the relay's directory with --data."
            )
        return found

    def boxes(self) -> dict[str, EnrolledBox]:
        """Return the enrolled boxes by name."""
        return {found.name: found for found in _read_all(self._boxes, EnrolledBox)}

    def invitations(self, now: int) -> list[PendingInvitation]:
        """Return the invitations that have not expired. `now` is in ms since 1970."""
        found = _read_all(self._invitations, PendingInvitation)
        return [pending for pending in found if now < pending.ends_at]

    def invite(self, name: str, secret: bytes, ends_at: int) -> Invitation:
        """Store an invitation that is valid until `ends_at`.

        An earlier invitation for this name becomes invalid. A box that is enrolled under the name
        keeps it until the invitation is used. Raises OperatorError if `name` is not a host name.
        """
        if not is_name(name):
            raise OperatorError(
                f"{name!r} is not a host name. Use a name such as atlas.example.com."
            )
        address, text = self.address(), secret.hex()
        write_json(self._invitations / name, PendingInvitation(name, _hash(text), ends_at))
        return Invitation(address, name, text)

    def find_invitation(self, secret: str, now: int) -> PendingInvitation | None:
        """Return the invitation with this secret, or None if there is none or it has expired."""
        hashed = _hash(secret)
        found = (each for each in self.invitations(now) if each.secret_hash == hashed)
        return next(found, None)

    def enrol(self, pending: PendingInvitation, key: str, now: int) -> None:
        """Enrol the box with this public key under the name in its invitation."""
        # Write the box first. If the disk is full, the invitation then stays valid.
        write_json(self._boxes / pending.name, EnrolledBox(pending.name, key, now))
        _delete(self._invitations / pending.name)

    def revoke(self, name: str) -> bool:
        """Delete the box and the invitation with this name. Return whether either existed."""
        paths = (self._invitations / name, self._boxes / name)
        found = [path for path in paths if is_name(name) and path.exists()]
        for path in found:
            _delete(path)
        return bool(found)


def _hash(secret: str) -> str:
    return sha256(secret.encode("utf-8", "replace")).hexdigest()


def _delete(path: Path) -> None:
    path.unlink(missing_ok=True)
    sync(path.parent)


def _read_all(folder: Path, kind: type[T]) -> Iterator[T]:
    """Yield the content of each file. Skips a file that another process has just deleted."""
    for path in sorted(folder.iterdir()) if folder.exists() else ():
        found = None if path.name.endswith(PART) else read_json(path, kind)
        if found is not None:
            yield found
