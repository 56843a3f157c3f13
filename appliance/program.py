"""Where `venuebox service install` installs the built program: /opt/venuebox/VERSION.

`/opt/venuebox/current` is a symbolic link to the folder in use, and `/usr/local/bin/venuebox` leads
there. Everything belongs to root. A new version is a new folder and a moved link, so there is a
whole program at each moment, and going back is the link moved back.
"""

import os
import shutil
import stat
import sys
from itertools import count
from pathlib import Path

from appliance.core.errors import OperatorError
from appliance.core.files import sync

PLACE = Path("/opt/venuebox")
COMMAND = Path("/usr/local/bin/venuebox")
_NAME = "venuebox"


def is_built() -> bool:
    """Whether this program was built by `make binary`, instead of running from its sources."""
    return bool(getattr(sys, "frozen", False))


def current_program(place: Path | None = None) -> Path:
    """Return the path of the installed program, through the link."""
    return (place or PLACE) / "current" / _NAME


def find_program() -> str:
    """Return the absolute path of this program, through the link if it is installed."""
    if is_built():
        return str(current_program() if is_installed() else sys.executable)
    called = Path(sys.argv[0])
    found = shutil.which(called) if called.name == _NAME else None
    return str(Path(found).absolute()) if found else str(Path(sys.executable).with_name(_NAME))


def is_installed() -> bool:
    """Whether this program runs from the place where it is installed."""
    return is_built() and Path(sys.executable).is_relative_to(PLACE)


def make_staging(place: Path = PLACE) -> Path:
    """Return the folder in `place` that its owner, root, alone may enter. Creates both folders.

    Raises OperatorError if another user could change the program.
    """
    place.mkdir(exist_ok=True)
    for folder in (place, *place.parents):
        state = folder.stat()
        is_open = state.st_mode & 0o022 and not state.st_mode & stat.S_ISVTX  # the mode of /tmp
        if is_open or state.st_uid not in {0, os.geteuid()}:
            raise OperatorError(f"{folder} can be changed by other users than root. Correct that.")
    place.chmod(0o755)
    staging = place / "staging"
    staging.mkdir(exist_ok=True)
    staging.chmod(0o700)
    return staging


def unpack(version: str, place: Path = PLACE) -> Path:
    """Copy this program, which is one file, into a new folder in `place`, and return the folder.

    Folders of versions that are not in use are deleted first.
    """
    part, current = make_staging(place) / "program", (place / "current").resolve()
    for old in (part, *place.iterdir()):
        if old.is_dir() and not old.is_symlink() and old not in {current, part.parent}:
            shutil.rmtree(old)
    names = (version if number == 1 else f"{version}-{number}" for number in count(1))
    folder = next(place / name for name in names if not (place / name).exists())
    # The one file has unpacked itself here. PyInstaller deletes these files when it exits.
    shutil.copytree(vars(sys)["_MEIPASS"], part / "_internal", symlinks=True)
    (part / "_internal" / _NAME).rename(part / _NAME)
    for path in (part, *part.rglob("*")):
        if not path.is_symlink():
            path.chmod(0o755)
    os.sync()  # one by one, a thousand files take a minute on a slow card
    part.rename(folder)
    sync(place)
    return folder


def switch(folder: Path, place: Path = PLACE) -> None:
    """Let the link `current` lead to `folder` in `place`, in one step."""
    _move_link(make_staging(place) / "current", place / "current", folder.name)


def link_command() -> None:
    """Let /usr/local/bin/venuebox lead to the program in use."""
    COMMAND.parent.mkdir(parents=True, exist_ok=True)
    _move_link(COMMAND.with_name(f".{COMMAND.name}.part"), COMMAND, str(current_program()))


def _move_link(aside: Path, link: Path, target: str) -> None:
    aside.unlink(missing_ok=True)
    aside.symlink_to(target)
    aside.replace(link)
    sync(link.parent)
