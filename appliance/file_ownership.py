"""Whose files they are: root works in a directory of another user as that user."""

import os
import pwd
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from appliance.errors import Trouble


def become_owner(folder: Path) -> None:
    """As root, give up root's rights for good where `folder` belongs to another user.

    A link that this user left in it then leads to nothing of root's, and what is made in it
    belongs to this user.
    """
    if os.geteuid() == 0 and (uid := find_owner(folder)) != 0:
        gid, groups = _find_groups(uid)
        os.setgroups(groups)
        os.setgid(gid)
        os.setuid(uid)
        program = Path(__file__).parent
        if not os.access(program, os.R_OK | os.X_OK):
            raise Trouble(
                f"{folder} belongs to {name_user(uid)}, who cannot read the program in {program}: "
                "put it where everybody may go, such as /opt"
            )


def find_owner(folder: Path) -> int:
    """A user's number; one's own where there is no folder yet."""
    try:
        return folder.stat().st_uid
    except (FileNotFoundError, NotADirectoryError):
        return os.geteuid()


@contextmanager
def acting_as(uid: int) -> Iterator[None]:
    """As root, act as another user for a moment: the whole process, so nothing runs beside it."""
    if os.geteuid() != 0 or uid == 0:
        yield
        return
    before = os.getgroups()
    gid, groups = _find_groups(uid)
    os.setgroups(groups)
    os.setegid(gid)
    os.seteuid(uid)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)
        os.setgroups(before)


def make_folder(path: Path) -> None:
    """A private folder, and those above it that are missing."""
    for each in (*reversed(path.parents), path):
        each.mkdir(mode=0o700, exist_ok=True)


def name_user(uid: int) -> str:
    """As `root`; a number without a name as `user 1000`."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"


def _find_groups(uid: int) -> tuple[int, list[int]]:
    """The user's own group, and all groups. A number without a name has that group alone."""
    try:
        user = pwd.getpwuid(uid)
    except KeyError:
        return uid, [uid]
    return user.pw_gid, os.getgrouplist(user.pw_name, user.pw_gid)
