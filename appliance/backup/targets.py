"""The targets of backup copies: an SFTP server or S3-compatible storage.

A target may be hostile, so this module is used only in a child process (`copy_process`). Functions
import asyncssh and obstore when they need them, because a box needs only one of the two.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from appliance.backup.catalogue import SUFFIX, parse_name
from appliance.core.errors import OperatorError
from appliance.core.files import PART, atomic_write, make_folder
from appliance.core.settings import BackupSettings, is_target
from appliance.core.ssh import connect, key_file

if TYPE_CHECKING:
    import asyncssh
    from obstore.store import S3Store

T = TypeVar("T")
# A progress callback. It receives the number of bytes copied and the total number of bytes.
Tell = Callable[[int, int], None]

_CONNECT_SECONDS = 30.0
_SMALL_SECONDS = 60.0  # deadline for short calls, such as `list` and `delete`, and for each block
SLOWEST = 20_000  # bytes per second; a slower transfer fails
_BLOCK = 1 << 20
_LIST_MAX = 4 << 20  # bytes of a target's list of files: the names, and _ENTRY for each
_ENTRY = 200
_PINS = "known_hosts"  # a file in secrets/
_OWN_KEYS = (
    "{host} refuses the SSH keys of this user. Put the user's public key on the server, or set the "
    "password: sudo VENUEBOX_BACKUP_TARGET_SECRET=… venuebox restore …"
)


class TargetError(OperatorError):
    """Raised if a backup target cannot be reached or refuses a request."""


def open_target(
    settings: BackupSettings, root: Path, warn: Callable[[str], None]
) -> "AbstractAsyncContextManager[Target]":
    """Connect to `settings.target`. `root` is the data directory; `warn` reports a new host key.

    Raises TargetError if the target fails, while connecting or during the block.
    """
    if not is_target(settings.target):
        raise TargetError(
            "this is not the address of a backup target. Use sftp://user@host/folder or "
            "s3://bucket/folder?endpoint=https://host, without a password"
        )
    url = urlsplit(settings.target)
    if url.scheme == "sftp":
        host = url.hostname or ""
        refused = f"{host} refuses the key of this box"
        if settings.target_secret:
            refused = f"{host} refuses the password"
        elif not key_file(root).exists():  # on a new machine, before a restore
            refused = _OWN_KEYS.format(host=host)
        return _explaining(_open_sftp(url, settings, root, warn), host, refused)
    endpoint = dict(parse_qsl(url.query)).get("endpoint", "https://s3.amazonaws.com")
    return _explaining(_open_s3(url, settings), urlsplit(endpoint).hostname or "")


@asynccontextmanager
async def _explaining(
    opened: AbstractAsyncContextManager[T], host: str, refused: str = ""
) -> AsyncIterator[T]:
    import asyncssh  # noqa: PLC0415 - see above
    from obstore.exceptions import BaseError  # noqa: PLC0415 - see above

    try:
        async with opened as target:
            yield target
    except asyncssh.PermissionDenied:
        raise TargetError(refused) from None
    except asyncssh.HostKeyNotVerifiable:
        raise TargetError(
            f"{host} presents a host key other than the one that this box expects. If the server "
            f"was reinstalled, remove its line from secrets/{_PINS}, or correct hostkey in the "
            "address"
        ) from None
    except TimeoutError:
        raise TargetError(f"{host} did not answer in time, or too slowly") from None
    except (asyncssh.Error, BaseError, OSError) as error:
        reason = str(error).split("\n")[0] or type(error).__name__
        if reason == "Failure":  # OpenSSH reports a full disk only as a failure
            reason = "the server failed and does not say why. Its disk may be full"
        raise TargetError(f"{host}: {reason}") from None


@asynccontextmanager
async def _open_sftp(
    url: SplitResult, settings: BackupSettings, root: Path, warn: Callable[[str], None]
) -> "AsyncIterator[Target]":
    """Connect to an SFTP server. Accept only the host key in its address.

    If the address has none, accept the key that the server presents at the first connection. From
    then on, `known_hosts` contains this key, and no other key is accepted.
    """
    import asyncssh  # noqa: PLC0415 - see above

    secrets, host, port = root / "secrets", url.hostname or "", url.port or 22
    pins, key = secrets / _PINS, key_file(root)
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
    else:  # docs/operations/backup.md says how to print the fingerprint of this one
        options["server_host_key_algs"] = "^ssh-ed25519"
    # A new machine does not have this file, so a restore there uses the user's own SSH keys.
    if key.exists():
        options["client_keys"] = [str(key)]
    async with asyncio.timeout(_CONNECT_SECONDS):
        connection = await connect(
            host, port, unquote(url.username or ""), is_trusted, keepalive_interval=15, **options
        )
    try:
        if shown and not expected:
            line = f"{label} {shown[0].export_public_key().decode().strip()}\n"
            make_folder(secrets)
            atomic_write(pins, (pins.read_bytes() if pins.exists() else b"") + line.encode())
            fingerprint = shown[0].get_fingerprint()
            warn(f"the host key {fingerprint} of {label} is trusted from now on")
        async with asyncio.timeout(_SMALL_SECONDS):
            sftp = await connection.start_sftp_client()
        yield _Sftp(sftp, connection.abort, unquote(url.path))
    finally:
        connection.abort()  # `close` could wait for a server that no longer answers
        await connection.wait_closed()


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
                left = _spend(left, name)
                if name.endswith(SUFFIX):
                    found[name] = entry.attrs.size or 0
        return found

    async def put(self, path: Path, size: int, tell: Tell) -> None:
        """Copy a file of `size` bytes to the target. `list` never returns an incomplete copy."""
        # All copies of a venue have the same temporary name, so that the next copy overwrites an
        # interrupted one.
        backup = parse_name(path.name)
        part = f"{self._folder}/.{backup.venue if backup else path.name}{SUFFIX}{PART}"
        async with self._within(_deadline(size)):
            await self._sftp.put(
                str(path), part, progress_handler=lambda _from, _to, done, total: tell(done, total)
            )
            await self._put_in_place(part, path.name)

    async def get(self, name: str, path: Path, size: int, tell: Tell) -> None:
        """Copy at most `size` bytes of a file from the target to `path`."""
        pace = _Pace(size, tell)
        async with self._within(_SMALL_SECONDS):
            file = await self._sftp.open(f"{self._folder}/{name}", "rb")
        with path.open("wb") as copy:
            while pace.left > 0:
                async with self._within(_SMALL_SECONDS):
                    block = cast("bytes", await file.read(min(pace.left, _BLOCK)))
                if not block:
                    break
                copy.write(block)
                pace.count(len(block))

    async def delete(self, name: str) -> None:
        """Delete a file."""
        async with self._within(_SMALL_SECONDS):
            await self._sftp.remove(f"{self._folder}/{name}")

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
        found, left = dict[str, int](), _LIST_MAX
        async with asyncio.timeout(_SMALL_SECONDS):
            async for page in self._store.list():
                for entry in page:
                    name = entry["path"]
                    left = _spend(left, name)
                    if name.endswith(SUFFIX) and "/" not in name:
                        found[name] = entry["size"]
        return found

    async def put(self, path: Path, size: int, _tell: Tell) -> None:
        async with asyncio.timeout(_deadline(size)):
            await self._store.put_async(path.name, path, max_concurrency=2)

    async def get(self, name: str, path: Path, size: int, tell: Tell) -> None:
        loop, pace = asyncio.get_running_loop(), _Pace(size, tell)
        with path.open("wb") as file:
            async with asyncio.timeout(_SMALL_SECONDS) as limit:
                found = await self._store.get_async(name)
                async for block in found.stream(min_chunk_size=_BLOCK):
                    file.write(memoryview(block)[: pace.left])
                    pace.count(len(block))
                    if pace.left <= 0:  # a server that sends more is not read further
                        break
                    limit.reschedule(loop.time() + _SMALL_SECONDS)

    async def delete(self, name: str) -> None:
        async with asyncio.timeout(_SMALL_SECONDS):
            await self._store.delete_async(name)


Target = _Sftp | _S3


def _spend(left: int, name: str) -> int:
    """Return the rest of _LIST_MAX after a file. Raises TargetError if nothing is left."""
    left -= len(name) + _ENTRY
    if left < 0:
        raise TargetError("the folder contains too many files for a backup target")
    return left


class _Pace:
    """The progress of a transfer that must not be slower than SLOWEST after its first minute."""

    def __init__(self, size: int, tell: Tell) -> None:
        self.left = self._size = size
        self._tell = tell
        self._began = asyncio.get_running_loop().time()

    def count(self, size: int) -> None:
        """Count `size` more bytes. Raises TimeoutError if the transfer is too slow."""
        self.left -= size
        seconds = asyncio.get_running_loop().time() - self._began
        if self._size - self.left < (seconds - _SMALL_SECONDS) * SLOWEST:
            raise TimeoutError
        self._tell(self._size - self.left, self._size)


def _deadline(size: int) -> float:
    """Return the maximum time for sending `size` bytes, in seconds."""
    return _SMALL_SECONDS + size / SLOWEST
