"""The data directory: its files, its lock, and the named pipe that wakes the running box.

docs/operations/data-directory.md describes the files. The box reads from the pipe. After a command
has committed changes to a database, it writes one byte to the pipe, and the box then reads the
changed rows.
"""

import asyncio
import contextlib
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from appliance.core import files
from appliance.core.errors import OperatorError
from appliance.core.tokens import EnvironmentName, Tokens

_MASTER_KEY_BYTES = 32
_BY_SERVE = b"serve"
_PIPE_BYTES = 65536  # the default capacity of a pipe on Linux
_INSTALLED = Path("/srv/venuebox")  # where docs/install.md installs a box
_FOLDERS = ("secrets", "tls", "backups", "log", "tmp")
# Files that a directory without a box may contain. The operator may write settings.toml before
# init, and many volumes have lost+found in their root folder.
_HARMLESS_FILES = {"settings.toml", "lost+found"}
ENVIRONMENTS: tuple[EnvironmentName, ...] = ("live", "test")


@dataclass(frozen=True, slots=True)
class DataDirectory:
    """The data directory at `root`."""

    root: Path

    @property
    def settings_file(self) -> Path:
        """The path of `settings.toml`."""
        return self.root / "settings.toml"

    @property
    def master_key_file(self) -> Path:
        """The path of the 32-byte master key. Each environment's keys are derived from it."""
        return self.root / "secrets" / "master.key"

    @property
    def tmp(self) -> Path:
        """The path of the private folder for temporary files, which `sweep` empties."""
        return self.root / "tmp"

    def sweep(self) -> None:
        """Delete temporary files left by a power cut. Call it at start, with the lock held."""
        for folder in (self.root, self.root / "secrets", self.root / "tls"):
            if folder == self.root or not folder.is_symlink():
                for path in folder.glob(f".*{files.PART}"):
                    path.unlink(missing_ok=True)
        shutil.rmtree(self.tmp, ignore_errors=True)
        files.make_folder(self.tmp)

    @property
    def databases(self) -> tuple[Path, ...]:
        """The paths of `live.db` and `test.db`."""
        return tuple(self.database(name) for name in ENVIRONMENTS)

    def database(self, environment: EnvironmentName) -> Path:
        """Return the path of the environment's database file."""
        return self.root / f"{environment}.db"

    def holds_a_box(self) -> bool:
        """Whether the directory contains a completely initialised box."""
        has_files = any(path.exists() for path in (*self.databases, self.master_key_file))
        return has_files and not (self._unfinished.exists() or self.restore_mark.exists())

    def is_free(self) -> bool:
        """Whether `serve` may initialise a box here, i.e. the directory is missing or has no data.

        Also True if an earlier `serve` was interrupted while it initialised the box. Raises
        OperatorError if the directory cannot be read.
        """
        try:
            if self._unfinished.exists():
                return self._unfinished.read_bytes() == _BY_SERVE
            names = {path.name for path in self.root.iterdir()}
        except FileNotFoundError:
            return True
        except OSError as error:
            self.refuse_strangers()
            raise OperatorError(f"{self.root} cannot be opened: {error.strerror}") from None
        return names <= _HARMLESS_FILES

    def check(self) -> None:
        """Raise OperatorError unless the directory holds a box that this user may open."""
        self.refuse_strangers()
        if self._unfinished.exists():
            raise OperatorError(f"init was interrupted in {self.root}. Run venuebox init again.")
        if self.restore_mark.exists():
            raise OperatorError(
                f"a restore was interrupted in {self.root}. Run venuebox restore again."
            )
        if not self.holds_a_box():
            raise OperatorError(
                f"there is no box in {self.root}. Run venuebox init first, or specify the box's "
                "directory with --data."
            )

    def refuse_links(self) -> None:
        """Raise OperatorError if one of the subfolders is a symbolic link."""
        for name in _FOLDERS:
            path = self.root / name
            with contextlib.suppress(PermissionError):  # refuse_strangers reports this error
                if path.is_symlink():
                    raise OperatorError(
                        f"{path} is a symbolic link, which venuebox refuses. Use a real folder. "
                        "To store backups elsewhere, set backup.directory in settings.toml."
                    )

    def master_key(self) -> bytes:
        """Return the master key.

        Raises OperatorError if the file is missing, damaged or readable by other users.
        """
        path = self.master_key_file
        self.refuse_lost_key()
        key = files.read_private(path)
        if len(key) != _MASTER_KEY_BYTES:
            raise OperatorError(f"{path} is damaged. Restore it from a backup.")
        return key

    def refuse_strangers(self) -> None:
        """Raise OperatorError if this user may not open the directory.

        The message names the directory's owner.
        """
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            try:
                self.settings_file.stat()
            except PermissionError:
                owner = "its owner"
                with contextlib.suppress(OSError):  # a parent folder may be unreadable too
                    owner = files.name_user(self.root.stat().st_uid)
                raise OperatorError(
                    f"only {owner} may open {self.root}. Run this command as that user, or as root "
                    "with sudo."
                ) from None

    def refuse_lost_key(self) -> None:
        """Raise OperatorError if the master key is missing."""
        with contextlib.suppress(PermissionError):  # refuse_strangers reports this error
            if not self.master_key_file.exists():
                raise OperatorError(
                    f"{self.master_key_file} is missing, and without it no link or pass is "
                    "valid. Restore a backup to another directory and copy the file from there."
                )

    def lock(self, message: str = "") -> contextlib.AbstractContextManager[None]:
        """Return a context manager that holds the directory's lock.

        A process must hold the lock to serve or initialise the directory. The kernel also releases
        it when the process ends. Entering the context raises OperatorError, by default with a
        general `message`, if another process holds the lock.
        """
        message = message or f"another venuebox already uses {self.root}. Stop it first."
        return files.exclusive(self.root, 0, message)

    @contextlib.contextmanager
    def founding(self, tokens: Tokens, *, by_serve: bool = False) -> Iterator[None]:
        """Create the directory and the master key. The block must create the databases.

        If the block is interrupted, `check` refuses the directory until `founding` is called again.
        If `by_serve` is True, the next `serve` calls it again; otherwise, the operator must run
        `init`. Raises OperatorError if the directory already contains a box.
        """
        self.make_folders()
        with self.lock():
            if self.holds_a_box():
                raise OperatorError(
                    f"{self.root} already contains a box. Specify an empty directory."
                )
            files.atomic_write(self._unfinished, _BY_SERVE if by_serve else b"")
            self._remove_databases()
            files.atomic_write(self.master_key_file, tokens.random_bytes(_MASTER_KEY_BYTES))
            yield
            self._unfinished.unlink()
            files.sync(self.root)

    def forget(self) -> None:
        """Delete a demo's databases, and mark the directory as not completely initialised.

        Call it with the lock held.
        """
        files.atomic_write(self._unfinished, b"")
        self._remove_databases()

    def remember_address(self, address: str) -> None:
        """Store the box's network address for commands that run in other processes."""
        files.atomic_write(self.root / "address", address.encode())

    def remembered_address(self) -> str | None:
        """Return the address that `remember_address` stored last, or None."""
        return _read_text(self.root / "address")

    def remember_host(self, host: str) -> None:
        """Store the host that the server listens on, for commands that run in other processes.

        It may differ from the setting, because the command line takes precedence.
        """
        files.atomic_write(self.root / "host", host.encode())

    def remembered_host(self) -> str | None:
        """Return the host that the server last listened on, or None."""
        return _read_text(self.root / "host")

    @property
    def wakeup_pipe(self) -> Path:
        """The path of the pipe that commands use to wake the running box (see `wake_box`)."""
        return self.root / "poke"

    @property
    def restore_mark(self) -> Path:
        """The path of the marker file that exists while a backup is being restored."""
        return self.root / "restore-unfinished"

    @property
    def _unfinished(self) -> Path:
        return self.root / "init-unfinished"

    def _remove_databases(self) -> None:
        for name in ENVIRONMENTS:
            for path in self.root.glob(f"{name}.db*"):
                path.unlink()

    def make_folders(self) -> None:
        """Create the directory and its subfolders, mode 0700. Raises OperatorError on failure."""
        try:
            self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
            if {path.name for path in self.root.iterdir()} <= _HARMLESS_FILES:
                with contextlib.suppress(PermissionError):  # a different user owns it
                    self.root.chmod(0o700)
            for name in _FOLDERS[:4]:
                files.make_folder(self.root / name)
        except OSError as error:
            raise OperatorError(
                f"{self.root} cannot be created ({error.strerror}). Specify another directory "
                "with --data, or run this command with sudo."
            ) from None


def _read_text(path: Path) -> str | None:
    try:
        return path.read_text("utf-8")
    except OSError:
        return None


def choose_data_directory(given: str | None, environ: Mapping[str, str]) -> DataDirectory:
    """Return the data directory to use.

    This is the first of: `given`, the value of the option `--data`; VENUEBOX_DATA in `environ`;
    /srv/venuebox, if it exists; and the user's data folder for this program.
    """
    chosen = given or environ.get("VENUEBOX_DATA")
    if chosen:
        path = Path(chosen).expanduser().absolute()
        # Resolve `..`, because systemd ignores a ReadWritePaths entry that contains it.
        return DataDirectory(path.resolve() if ".." in path.parts else path)
    if _INSTALLED.is_dir():
        return DataDirectory(_INSTALLED)
    home = Path(environ.get("XDG_DATA_HOME") or Path.home() / ".local/share")
    return DataDirectory(home / "venuebox")


def wake_box(pipe: Path) -> bool:
    """Wake the box that reads `pipe`, so that it reads changed rows.

    Returns False if no box is running.
    """
    try:
        handle = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
        with os.fdopen(handle, "wb", buffering=0) as file:
            file.write(b".")  # if the pipe is full, its unread bytes wake the box
    except OSError:  # there is no pipe, or no process reads it
        return False
    return True


@contextlib.contextmanager
def listen_for_wakeups(pipe: Path, on_wakeup: Callable[[], None]) -> Iterator[None]:
    """During the block, call `on_wakeup` in the running event loop after each call of `wake_box`.

    Several calls of `wake_box` in quick succession may cause only one call.
    """
    pipe.unlink(missing_ok=True)  # a crashed process may have left a pipe
    os.mkfifo(pipe, 0o600)
    # Open the pipe for writing too. Otherwise, a read returns end-of-file after a command exits.
    handle = os.open(pipe, os.O_RDWR | os.O_NONBLOCK)
    loop = asyncio.get_running_loop()

    def read() -> None:
        with contextlib.suppress(BlockingIOError):
            os.read(handle, _PIPE_BYTES)
        on_wakeup()

    loop.add_reader(handle, read)
    try:
        yield
    finally:
        loop.remove_reader(handle)
        pipe.unlink(missing_ok=True)
        os.close(handle)
