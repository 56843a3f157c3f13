"""The data directory: its files and their permissions (docs/operations/data-directory.md)."""

import contextlib
import fcntl
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from appliance.core.errors import OperatorError
from appliance.core.files import PART, atomic_write, make_folder, name_user, read_private, sync
from appliance.core.tokens import EnvironmentName, Tokens

_MASTER_KEY_BYTES = 32
_BY_SERVE = b"serve"
_FOLDERS = ("secrets", "tls", "backups", "log", "tmp", "tz")
_MAY_BE_THERE = {"settings.toml", "lost+found"}  # written before init; root of a volume
ENVIRONMENTS: tuple[EnvironmentName, ...] = ("live", "test")


@dataclass(frozen=True, slots=True)
class DataDirectory:
    """The paths of one box's data directory, and operations on its files."""

    root: Path

    @property
    def settings_file(self) -> Path:
        """`settings.toml`."""
        return self.root / "settings.toml"

    @property
    def master_key_file(self) -> Path:
        """The file with the 32-byte master key; all other keys are derived from it."""
        return self.root / "secrets" / "master.key"

    @property
    def tmp(self) -> Path:
        """The private directory for temporary files; `sweep` empties it at start."""
        return self.root / "tmp"

    def sweep(self) -> None:
        """Remove temporary files left by a power cut. Call at start, with the lock held."""
        for folder in (self.root, self.root / "secrets", self.root / "tls"):
            if folder == self.root or not folder.is_symlink():
                for left in folder.glob(f".*{PART}"):
                    left.unlink(missing_ok=True)
        shutil.rmtree(self.tmp, ignore_errors=True)
        make_folder(self.tmp)

    @property
    def databases(self) -> tuple[Path, ...]:
        """`live.db` and `test.db`."""
        return tuple(self.database(name) for name in ENVIRONMENTS)

    def database(self, environment: EnvironmentName) -> Path:
        """The path of the database file of `environment`."""
        return self.root / f"{environment}.db"

    def holds_a_box(self) -> bool:
        """Whether the directory contains a completely initialised box."""
        begun = any(path.exists() for path in (*self.databases, self.master_key_file))
        return begun and not (self._unfinished.exists() or self.restore_mark.exists())

    def is_free(self) -> bool:
        """Whether `serve` may initialise a box here: the directory is missing or has no data.

        Also true after an interrupted first start of `serve`. OperatorError if it is unreadable.
        """
        try:
            if self._unfinished.exists():
                return self._unfinished.read_bytes() == _BY_SERVE
            found = {path.name for path in self.root.iterdir()}
        except FileNotFoundError:
            return True
        except OSError as error:
            self.refuse_strangers()
            raise OperatorError(f"{self.root} cannot be opened: {error.strerror}") from None
        return found <= _MAY_BE_THERE

    def check(self) -> None:
        """Raise OperatorError unless the directory holds a box that this user may open."""
        self.refuse_strangers()
        if self._unfinished.exists():
            raise OperatorError(f"init was interrupted in {self.root}: run venuebox init once more")
        if self.restore_mark.exists():
            raise OperatorError(
                f"a restore was interrupted in {self.root}: run venuebox restore again"
            )
        if not self.holds_a_box():
            raise OperatorError(
                f"there is no box in {self.root}: run venuebox init first, or name its directory "
                "with --data"
            )

    def refuse_links(self) -> None:
        """Raise OperatorError if one of the subfolders is a symbolic link."""
        for name in _FOLDERS:
            path = self.root / name
            with contextlib.suppress(PermissionError):  # reported by refuse_strangers
                if path.is_symlink():
                    raise OperatorError(
                        f"{path} is a link, which is not followed: put the folder itself there "
                        "(backups may go elsewhere: backup.directory in settings.toml)"
                    )

    def master_key(self) -> bytes:
        """Return the master key. OperatorError if it is missing, damaged or readable by others."""
        path = self.master_key_file
        self.refuse_lost_key()
        key = read_private(path)
        if len(key) != _MASTER_KEY_BYTES:
            raise OperatorError(f"{path} is damaged: restore it from a backup")
        return key

    def refuse_strangers(self) -> None:
        """Raise OperatorError, naming the owner, if this user may not open the directory."""
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            try:
                self.settings_file.stat()
            except PermissionError:
                owner = "its owner"
                with contextlib.suppress(OSError):  # a parent folder may be unreadable too
                    owner = name_user(self.root.stat().st_uid)
                raise OperatorError(
                    f"{self.root} is open to {owner} alone: run this as that user, or as root with "
                    "sudo"
                ) from None

    def refuse_lost_key(self) -> None:
        """Raise OperatorError if the master key is missing."""
        with contextlib.suppress(PermissionError):  # reported by refuse_strangers
            if not self.master_key_file.exists():
                raise OperatorError(
                    f"{self.master_key_file} is missing: restore it from a backup to another "
                    "directory and copy it from there; without it no link or pass of this box can "
                    "be read"
                )

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Hold an exclusive lock: no other process may serve or initialise this directory.

        The kernel releases it when the process ends. OperatorError if another process holds it.
        """
        try:
            handle = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY)
        except OSError as error:
            raise OperatorError(f"{self.root} cannot be opened: {error.strerror}") from None
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise OperatorError(
                    f"another venuebox already uses {self.root}: stop it first"
                ) from None
            yield
        finally:
            os.close(handle)

    @contextmanager
    def founding(self, tokens: Tokens, *, by_serve: bool = False) -> Iterator[None]:
        """Create the directory and the master key; the caller creates the databases in the block.

        If interrupted, it leaves a directory that `check` refuses and that `founding` may
        initialise again; `serve` does so itself if it began. OperatorError if a box exists here.
        """
        self.make_folders()
        with self.lock():
            if self.holds_a_box():
                raise OperatorError(f"{self.root} already holds a box: choose an empty directory")
            atomic_write(self._unfinished, _BY_SERVE if by_serve else b"")
            self._remove_databases()
            atomic_write(self.master_key_file, tokens.random_bytes(_MASTER_KEY_BYTES))
            yield
            self._unfinished.unlink()
            sync(self.root)

    def forget(self) -> None:
        """Delete the box permanently; only used for demos. The caller holds the lock."""
        atomic_write(self._unfinished, b"")
        self._remove_databases()

    def remember_address(self, address: str) -> None:
        """Store the box's address on the network, for commands that run in other processes."""
        atomic_write(self._address, address.encode())

    def remembered_address(self) -> str | None:
        """The address that `remember_address` stored last, or None."""
        return _recall(self._address)

    def remember_host(self, host: str) -> None:
        """Store the host that the server listens on; the command line may have set it."""
        if host != self.remembered_host():
            atomic_write(self._host, host.encode())

    def remembered_host(self) -> str | None:
        """The host that the server last listened on, or None."""
        return _recall(self._host)

    @property
    def wakeup_pipe(self) -> Path:
        """The pipe by which a command wakes the running box; see `process.wake_box`."""
        return self.root / "poke"

    @property
    def restore_mark(self) -> Path:
        """The marker file that exists while a backup is being restored."""
        return self.root / "restore-unfinished"

    @property
    def _unfinished(self) -> Path:
        return self.root / "init-unfinished"

    @property
    def _address(self) -> Path:
        return self.root / "address"

    @property
    def _host(self) -> Path:
        return self.root / "host"

    def _remove_databases(self) -> None:
        for path in self.databases:
            for leftover in self.root.glob(f"{path.name}*"):
                leftover.unlink()

    def make_folders(self) -> None:
        """Create the directory and its subfolders, mode 0700. OperatorError on failure."""
        try:
            self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
            if {path.name for path in self.root.iterdir()} <= _MAY_BE_THERE:
                with contextlib.suppress(PermissionError):  # made by somebody else
                    self.root.chmod(0o700)
            for name in _FOLDERS[:4]:
                make_folder(self.root / name)
        except OSError as error:
            raise OperatorError(
                f"{self.root} cannot be made ({error.strerror}): name another directory with "
                "--data, or run it as root with sudo"
            ) from None


def _recall(path: Path) -> str | None:
    try:
        return path.read_text("utf-8")
    except OSError:
        return None


def choose_data_directory(given: str | None, environ: Mapping[str, str]) -> DataDirectory:
    """The data directory: `--data`, else `VENUEBOX_DATA`, else the platform's default."""
    named = given or environ.get("VENUEBOX_DATA")
    if named:
        path = Path(named).expanduser().absolute()
        # systemd ignores a ReadWritePaths entry that contains `..`.
        return DataDirectory(path.resolve() if ".." in path.parts else path)
    import platformdirs  # noqa: PLC0415 - only needed without a named directory

    return DataDirectory(platformdirs.user_data_path("venuebox", appauthor=False))
