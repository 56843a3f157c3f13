"""The targets of backup copies: an SFTP server, S3-compatible storage, or the box's relay.

Functions import asyncssh and obstore when they need them, because an import at the top of this file
would delay the start of the box.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from appliance.backup.catalogue import SUFFIX, slug_of
from appliance.core.data_directory import DataDirectory
from appliance.core.errors import OperatorError
from appliance.core.files import PART, atomic_write, make_folder
from appliance.core.settings import BackupSettings, is_target
from appliance.relay_access import BOX_USER, Access, access_file

if TYPE_CHECKING:
    import asyncssh
    from obstore.store import S3Store

T = TypeVar("T")
# An SFTP client, and a function that aborts its connection
_Opened = tuple["asyncssh.SFTPClient", Callable[[], None]]
log = logging.getLogger(__name__)

_CONNECT_SECONDS = 30.0
_SMALL_SECONDS = 60.0  # deadline for short calls, such as `list`, `head` and `delete`
_SLOWEST = 20_000  # bytes per second; a slower transfer does not finish before its deadline
HEAD_BYTES = 8192  # more than the longest header of a backup
_BLOCK = 1 << 20
_LIST_MAX = 4 << 20  # bytes of a target's list of files: the names, and _ENTRY bytes for each
_ENTRY = 200
_PINS, _KEY = "known_hosts", "sftp_key"  # names of files in secrets/


class TargetError(OperatorError):
    """Raised if a backup target cannot be reached or refuses a request."""


def open_target(
    settings: BackupSettings, directory: DataDirectory
) -> "AbstractAsyncContextManager[Target]":
    """Connect to `settings.target`.

    Raises TargetError if the target fails, while connecting or during the block.
    """
    if not is_target(settings.target):
        raise TargetError(
            "this is not the address of a backup target. Use sftp://user@host/folder, "
            "s3://bucket/folder?endpoint=https://host or relay:, without a password"
        )
    if settings.target == "relay:":
        return _open_relay(directory)
    url = urlsplit(settings.target)
    if url.scheme == "sftp":
        return _explaining(_open_sftp(url, settings, directory), url.hostname or "")
    endpoint = dict(parse_qsl(url.query)).get("endpoint", "https://s3.amazonaws.com")
    return _explaining(_open_s3(url, settings), urlsplit(endpoint).hostname or "")


@asynccontextmanager
async def _explaining(opened: AbstractAsyncContextManager[T], host: str) -> AsyncIterator[T]:
    import asyncssh  # noqa: PLC0415 - see above
    from obstore.exceptions import BaseError  # noqa: PLC0415 - see above

    try:
        async with opened as target:
            yield target
    except asyncssh.PermissionDenied:
        raise TargetError(f"{host} refuses the key and the password of this box") from None
    except asyncssh.HostKeyNotVerifiable:
        raise TargetError(
            f"{host} presents a host key other than the one that this box expects. If the server "
            f"was reinstalled, remove its line from secrets/{_PINS}, or correct hostkey in the "
            "address"
        ) from None
    except TimeoutError:
        raise TargetError(f"{host} did not answer in time") from None
    except (asyncssh.Error, BaseError, OSError) as error:
        reason = str(error).split("\n")[0] or type(error).__name__
        if reason == "Failure":  # OpenSSH's only word for a full disk
            reason = "the server failed and does not say why. Its disk may be full"
        raise TargetError(f"{host}: {reason}") from None


def ensure_sftp_key(directory: DataDirectory) -> str:
    """Return the box's public SSH key for `authorized_keys`, after creating it if it is missing."""
    import asyncssh  # noqa: PLC0415 - see above

    path = directory.root / "secrets" / _KEY
    if not path.exists():
        make_folder(path.parent)
        key = asyncssh.generate_private_key("ssh-ed25519", comment="venuebox")
        atomic_write(path, key.export_private_key())
    return asyncssh.read_private_key(path).export_public_key().decode().strip()


@asynccontextmanager
async def _connect(
    host: str, port: int, user: str, is_trusted: Callable[["asyncssh.SSHKey"], bool], **options: Any
) -> AsyncIterator[_Opened]:
    """Connect by SSH and start SFTP. Close both at the end of the block.

    `is_trusted` must return whether to accept the server's host key.
    """
    import asyncssh  # noqa: PLC0415 - see above

    class Client(asyncssh.SSHClient):
        def validate_host_public_key(
            self, host: str, addr: str, port: int, key: asyncssh.SSHKey
        ) -> bool:
            del host, addr, port
            return is_trusted(key)

    async with asyncio.timeout(_CONNECT_SECONDS):
        connection = await asyncssh.connect(
            host, port, client_factory=Client, username=user, config=None, keepalive_interval=15,
            # By default asyncssh looks into the home, and fails where systemd or root closes it.
            x509_trusted_cert_paths=[],
            **{"known_hosts": ([], [], [])} | options,
        )  # fmt: skip
    try:
        async with asyncio.timeout(_SMALL_SECONDS):
            sftp = await connection.start_sftp_client()
        yield sftp, connection.abort
    finally:
        connection.abort()  # `close` could wait for a server that no longer answers
        await connection.wait_closed()


@asynccontextmanager
async def _open_sftp(
    url: SplitResult, settings: BackupSettings, directory: DataDirectory
) -> "AsyncIterator[Target]":
    """Connect to an SFTP server. Accept only the host key in its address.

    If the address has none, accept the key that the server presents at the first connection. From
    then on, `known_hosts` contains this key, and no other key is accepted.
    """
    import asyncssh  # noqa: PLC0415 - see above

    secrets, host, port = directory.root / "secrets", url.hostname or "", url.port or 22
    pins, key = secrets / _PINS, secrets / _KEY
    label = host if port == 22 else f"[{host}]:{port}"
    # A fingerprint may contain a plus sign, which `parse_qsl` decodes as a space.
    expected = dict(parse_qsl(url.query)).get("hostkey", "").replace(" ", "+")
    is_pinned = pins.exists() and any(asyncssh.match_known_hosts(str(pins), host, "", port))
    shown: list[asyncssh.SSHKey] = []

    def is_trusted(key: asyncssh.SSHKey) -> bool:
        shown.append(key)
        return key.get_fingerprint() == expected if expected else not is_pinned

    options: dict[str, Any] = {"password": settings.target_secret or None}
    if is_pinned and not expected:
        options["known_hosts"] = str(pins)
    else:  # docs/operations/backup.md tells how to print the fingerprint of this one
        options["server_host_key_algs"] = "^ssh-ed25519"
    # A new machine does not have this file, so a restore there uses the user's own SSH keys.
    if key.exists():
        options |= {"client_keys": [str(key)], "agent_path": None}
    async with _connect(host, port, unquote(url.username or ""), is_trusted, **options) as opened:
        if shown and not expected:
            line = f"{label} {shown[0].export_public_key().decode().strip()}\n"
            make_folder(secrets)
            atomic_write(pins, (pins.read_bytes() if pins.exists() else b"") + line.encode())
            fingerprint = shown[0].get_fingerprint()
            log.warning("backup: host key %s of %s is trusted from now on", fingerprint, label)
        yield _Sftp(*opened, unquote(url.path))


@asynccontextmanager
async def _open_relay(directory: DataDirectory) -> "AsyncIterator[Target]":
    async with connect_relay(directory) as opened:
        yield _Sftp(*opened, ".")


@asynccontextmanager
async def connect_relay(directory: DataDirectory) -> AsyncIterator[_Opened]:
    """Connect to the relay that the box has joined, and sign in with the box's key for the relay.

    Raises TargetError if the relay fails, while connecting or during the block. The block must set
    its own deadlines.
    """
    import asyncssh  # noqa: PLC0415 - see above

    access = Access.load(access_file(directory.root))
    if access is None:
        raise TargetError("this box has not joined a relay. Run venuebox relay join.")
    relay = access.relay
    connecting = _connect(
        relay.host, relay.port, BOX_USER, relay.has_key, agent_path=None,
        client_keys=[asyncssh.import_private_key(access.key)],
        server_host_key_algs=["ssh-ed25519"],
    )  # fmt: skip
    async with _explaining(connecting, relay.host) as opened:
        yield opened


@dataclass(frozen=True, slots=True)
class _Sftp:
    """A connection to a backup target. Each `name` is a file name. Every call has a deadline."""

    _sftp: "asyncssh.SFTPClient"
    _abort: Callable[[], None]
    _folder: str

    @asynccontextmanager
    async def _within(self, seconds: float) -> AsyncIterator[None]:
        """Abort the connection and raise TimeoutError if the block takes longer.

        If the server's disk hangs, cancelling the block would wait for it to close its files.
        """
        import asyncssh  # noqa: PLC0415 - see above

        loop = asyncio.get_running_loop()
        timer = loop.call_later(seconds, self._abort)
        try:
            yield
        except (asyncssh.Error, OSError):
            if loop.time() < timer.when():
                raise
            raise TimeoutError from None
        finally:
            timer.cancel()

    async def list(self) -> dict[str, int]:
        """Return the size in bytes of each backup, by name."""
        found, left = dict[str, int](), _LIST_MAX
        async with self._within(_SMALL_SECONDS):
            await self._sftp.makedirs(self._folder, exist_ok=True)
            async for entry in self._sftp.scandir(self._folder):
                name = str(entry.filename)
                left -= len(name) + _ENTRY
                if left < 0:
                    raise TargetError("the folder contains too many files for a backup target")
                if name.endswith(SUFFIX):
                    found[name] = entry.attrs.size or 0
        return found

    async def put(self, path: Path, size: int) -> None:
        """Copy a file of `size` bytes to the target. `list` never returns an incomplete copy."""
        # All copies of a venue have the same temporary name, so that the next copy overwrites an
        # interrupted one.
        part = f"{self._folder}/.{slug_of(path.name)}{SUFFIX}{PART}"
        async with self._within(_deadline(size)):
            await self._sftp.put(str(path), part)
            await self._put_in_place(part, path.name)

    async def get(self, name: str, path: Path, size: int) -> None:
        """Copy at most `size` bytes of a file from the target to `path`."""
        source = f"{self._folder}/{name}"
        async with self._within(_deadline(size)), self._sftp.open(source, "rb") as file:
            with path.open("wb") as copy:
                while size > 0 and (block := cast("bytes", await file.read(min(size, _BLOCK)))):
                    copy.write(block)
                    size -= len(block)

    async def delete(self, name: str) -> None:
        """Delete a file."""
        async with self._within(_SMALL_SECONDS):
            await self._sftp.remove(f"{self._folder}/{name}")

    async def read(self, name: str, size: int) -> bytes | None:
        """Return the first `size` bytes of a backup, or None if it is missing."""
        import asyncssh  # noqa: PLC0415 - see above

        async with self._within(_SMALL_SECONDS):
            try:
                async with self._sftp.open(f"{self._folder}/{name}", "rb") as file:
                    content: Any = await file.read(size)
            except asyncssh.SFTPNoSuchFile:
                return None
            return bytes(content)

    async def _put_in_place(self, part: str, name: str) -> None:
        import asyncssh  # noqa: PLC0415 - see above

        path = f"{self._folder}/{name}"
        try:
            await self._sftp.posix_rename(part, path)
        except asyncssh.SFTPOpUnsupported:  # not all servers support `posix_rename`
            if await self._sftp.exists(path):
                await self._sftp.remove(path)
            await self._sftp.rename(part, path)


@asynccontextmanager
async def _open_s3(url: SplitResult, settings: BackupSettings) -> "AsyncIterator[Target]":
    from obstore.store import S3Store  # noqa: PLC0415 - see above

    options = dict(parse_qsl(url.query))
    endpoint = options.get("endpoint", "")
    place: Any = {"endpoint": endpoint} if endpoint else {}
    yield _S3(
        S3Store(
            url.netloc, prefix=unquote(url.path).strip("/") or None,
            access_key_id=settings.target_key, secret_access_key=settings.target_secret,
            region=options.get("region", "us-east-1"), **place,
            client_options={
                "connect_timeout": f"{_CONNECT_SECONDS:.0f}s",
                "timeout": "10min",  # for each HTTP request; `_deadline` limits a whole transfer
                "allow_http": endpoint.startswith("http:"),
            },
            retry_config={"max_retries": 2},
        )
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _S3:
    """Like `_Sftp`, with the same methods."""

    _store: "S3Store"

    async def list(self) -> dict[str, int]:
        async with asyncio.timeout(_SMALL_SECONDS):
            found = await self._store.list_with_delimiter_async()
        objects: Any = found["objects"]
        return {one["path"]: one["size"] for one in objects if one["path"].endswith(SUFFIX)}

    async def put(self, path: Path, size: int) -> None:
        async with asyncio.timeout(_deadline(size)):
            await self._store.put_async(path.name, path, max_concurrency=2)

    async def get(self, name: str, path: Path, size: int) -> None:
        async with asyncio.timeout(_SMALL_SECONDS):
            found = await self._store.get_async(name)
        async with asyncio.timeout(_deadline(size)):
            with path.open("wb") as file:
                async for block in found.stream(min_chunk_size=_BLOCK):
                    file.write(memoryview(block)[: size - file.tell()])

    async def delete(self, name: str) -> None:
        async with asyncio.timeout(_SMALL_SECONDS):
            await self._store.delete_async(name)

    async def read(self, name: str, size: int) -> bytes | None:
        from obstore.exceptions import NotFoundError  # noqa: PLC0415 - see above

        async with asyncio.timeout(_SMALL_SECONDS):
            try:
                return bytes(await self._store.get_range_async(name, start=0, end=size))
            except (FileNotFoundError, NotFoundError):
                return None


Target = _Sftp | _S3


def _deadline(size: int) -> float:
    """Return the maximum time for the transfer of `size` bytes, in seconds."""
    return _SMALL_SECONDS + size / _SLOWEST
