"""To whom a file belongs that root makes beside the box: to the box's user, who must read it."""

import contextlib
import os
import stat
from pathlib import Path


def hand_over(handle: int, folder: Path) -> None:
    """Give an open file or folder to whom `folder` belongs, where root made it.

    A volume that knows no owners, or keeps root from it, is no failure: `doctor` names what is
    not the box's. A file that has another name elsewhere is not given away.
    """
    if os.geteuid() == 0:
        found = os.fstat(handle)
        if stat.S_ISREG(found.st_mode) and found.st_nlink > 1:
            return
        owner = folder.stat()
        with contextlib.suppress(OSError):
            os.fchown(handle, owner.st_uid, owner.st_gid)


def make_folder(path: Path) -> None:
    """A private folder, unless it is there: for whom the folder around it belongs to.

    Those above it are made likewise, as far as they are missing.
    """
    if not path.parent.exists():
        make_folder(path.parent)
    try:
        path.mkdir(mode=0o700)
    except FileExistsError:
        if not path.is_dir():
            raise
        return
    hand_over_folder(path)


def hand_over_folder(path: Path) -> None:
    """Give a new folder to whom the one around it belongs to, where root made it."""
    # Its owner may put a link in its place meanwhile: that is not followed.
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        hand_over(handle, path.parent)
    finally:
        os.close(handle)
