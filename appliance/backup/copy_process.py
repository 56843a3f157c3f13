"""The child process that copies backups to a target, or from it.

A broken or hostile target may send data that unpacks to gigabytes, an endless list, or a byte
a minute. This affects only the child, which has its own limits. The kernel ends it if it
exceeds them.
"""

import asyncio
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO, cast

import msgspec

from appliance.backup.catalogue import choose_old, parse_name, sort_names
from appliance.backup.targets import SLOWEST, Target, TargetError, Tell, open_target
from appliance.core.errors import OperatorError
from appliance.core.files import require_space
from appliance.core.settings import BackupSettings

ARGUMENT = "--copy-process"  # starts the built program as the child process
_MEMORY = 256 << 20  # limit of memory in bytes; asyncssh and obstore need 120 MiB
_SECONDS = 600  # the deadline of a job, without its transfer
_LINE_MAX = 1 << 16


class Put(msgspec.Struct, frozen=True, tag=True):
    """Copy the file `path` to the target, unless it is there, and delete old copies there."""

    root: str  # the data directory
    settings: BackupSettings
    path: str
    seconds: int = _SECONDS


class Get(msgspec.Struct, frozen=True, tag=True):
    """Copy the backup `name` from the target into a folder, or the latest one if it is "".

    Fails if less than `reserve` bytes of disk space would be left. At most `size` bytes are copied,
    if given, even if the target claims more.
    """

    root: str
    settings: BackupSettings
    name: str
    folder: str
    reserve: int
    size: int | None = None
    seconds: int = _SECONDS


Job = Put | Get


class _Line(msgspec.Struct, omit_defaults=True):
    """A line of the child's output. The last line has `name` or `error`."""

    done: int = 0
    total: int = 0
    warning: str = ""
    name: str = ""  # the name of the copied backup
    error: str = ""


def run_child(
    job: Job, warn: Callable[[str], None], tell: Tell = lambda _done, _total: None
) -> str:
    """Run `job` in a child process, and return the name of the copied backup.

    Blocks until the child has ended. `warn` receives sentences for the log, `tell` the progress of
    a transfer. Raises TargetError if the job fails, or if the child exceeds its limits.
    """
    command = [sys.executable, ARGUMENT]
    if not getattr(sys, "frozen", False):
        command = [sys.executable, "-P", "-m", __name__]
    # If this process ends, the kernel closes the pipe, and the child ends as well.
    with subprocess.Popen(  # noqa: S603 - this program
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        jobs, lines = cast("IO[bytes]", child.stdin), cast("IO[bytes]", child.stdout)
        try:
            jobs.write(msgspec.json.encode(job) + b"\n")
            jobs.flush()
            while text := lines.readline(_LINE_MAX):
                line = msgspec.json.decode(text, type=_Line)
                if line.error:
                    raise TargetError(line.error)
                if line.name:
                    return line.name
                if line.warning:
                    warn(line.warning)
                else:
                    tell(line.done, line.total)
        except (BrokenPipeError, msgspec.DecodeError):
            pass
        finally:
            child.kill()
    raise TargetError(
        "the copy was stopped, because the backup target took too long or sent too much"
    )


def main() -> int:
    """Run as the child: read a job from standard input, and print its progress and result."""
    job = msgspec.json.decode(sys.stdin.buffer.readline(), type=Job)
    _limit(job.seconds)
    try:
        _say(_Line(name=asyncio.run(_perform(job))))
    except OperatorError as error:
        _say(_Line(error=str(error)))
    except OSError as error:
        _say(_Line(error=error.strerror or str(error)))
    except MemoryError:
        return 1
    return 0


def _limit(seconds: int) -> None:
    """Limit memory, time and priority. A larger transfer gets more time."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.alarm(seconds)
    resource.setrlimit(resource.RLIMIT_DATA, (_MEMORY, _MEMORY))
    os.nice(5)
    with suppress(OSError):  # if the machine is short of memory, the kernel ends this process first
        Path("/proc/self/oom_score_adj").write_text("1000", "ascii")


def _say(line: _Line) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(line) + b"\n")
    sys.stdout.buffer.flush()


async def _perform(job: Job) -> str:
    asyncio.get_running_loop().add_reader(sys.stdin.fileno(), os._exit, 1)
    async with open_target(
        job.settings, Path(job.root), lambda warning: _say(_Line(warning=warning))
    ) as target:
        return await perform(job, target, lambda done, total: _say(_Line(done, total)))


async def perform(job: Job, target: Target, tell: Tell) -> str:
    """Do the job at a target, and return the name of the copied backup. Raises TargetError."""
    if isinstance(job, Put):
        return await _put(job, target, tell)
    return await _get(job, target, tell)


async def _put(job: Put, target: Target, tell: Tell) -> str:
    path = Path(job.path)
    size = path.stat().st_size  # noqa: ASYNC240 - nothing else runs in this process
    files = await target.list()
    if files.get(path.name) != size:
        signal.alarm(job.seconds + size // SLOWEST)
        await target.put(path, size, tell)
    for name in choose_old({*files, path.name}, path.name):
        await target.delete(name)
    return path.name


async def _get(job: Get, target: Target, tell: Tell) -> str:
    files = await target.list()
    where = job.settings.target
    backups = sort_names(files)
    if not job.name and len({backup.venue for backup in backups}) > 1:
        slugs = sorted({backup.slug for backup in backups})
        raise TargetError(
            f"{where} has backups of several venues ({', '.join(slugs)}). Add the name of one "
            "backup to the address."
        )
    name = job.name or next((backup.name for backup in backups), "")
    if name not in files or parse_name(name) is None:
        raise TargetError(f"{where} has no backup {name}".rstrip())
    folder = Path(job.folder)
    size = files[name] if job.size is None else min(files[name], job.size)
    require_space(folder, size + job.reserve, "the backup was not fetched")
    signal.alarm(job.seconds + size // SLOWEST)
    await target.get(name, folder / name, size, tell)
    return name


if __name__ == "__main__":
    sys.exit(main())
