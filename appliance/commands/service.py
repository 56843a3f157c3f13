"""`venuebox service`: install the program, and the box as a systemd service."""

import argparse
import contextlib
import grp
import os
import pwd
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from importlib import resources
from pathlib import Path

from appliance.commands.console import Commands, Console, add_command, add_group
from appliance.core.data_directory import DataDirectory, choose_data_directory
from appliance.core.errors import OperatorError
from appliance.core.files import acting_as, find_owner
from appliance.core.settings import Settings, is_system_folder
from appliance.environment import own_version
from appliance.program import (
    PLACE,
    current_program,
    find_program,
    is_built,
    is_installed,
    link_command,
    switch,
    unpack,
)
from appliance.release import REQUEST

UNIT = Path("/etc/systemd/system/venuebox.service")
_UPDATE_PATH, _UPDATE_SERVICE = "venuebox-update.path", "venuebox-update.service"
BOOTED = Path("/run/systemd/system")  # exists if systemd is the init system, see sd_booted(3)
_SCANNER_GROUPS = ("dialout", "input")
_SYSTEM_USER = ("--system", "--no-create-home", "--shell", "/usr/sbin/nologin")
_ESCAPED = {sign: f"\\x{ord(sign):02x}" for sign in " \"'\\;"} | {"%": "%%"}
_HOMES = ("/home", "/root", "/run/user")
_HOME_HIDDEN = "# Hide home directories from the service.\nProtectHome=yes\n"


def add(commands: Commands) -> None:
    """Add the command to the command line."""
    group = add_group(commands, "service", "run the box as a system service")
    parser = add_command(group, "install", run, "write and enable the systemd unit", "--data")
    parser.add_argument("--user", metavar="U", default="venuebox", help="user that runs the box")
    parser.add_argument("--print", action="store_true", help="print the unit and change nothing")
    parser = add_command(group, "unpack", _unpack, "install only the program, which is one file")
    meaning = "create a folder for this version in DIR (default: %(default)s)"
    parser.add_argument("place", nargs="?", type=Path, default=PLACE, metavar="DIR", help=meaning)


def run(arguments: argparse.Namespace, console: Console) -> int:
    """Write, enable and start the unit for this program and data directory."""
    directory = choose_data_directory(arguments.data, console.environ)
    program = str(current_program()) if is_built() else find_program()
    if not arguments.print and os.geteuid() != 0:
        raise OperatorError("only root can install a service. Use sudo.")
    with acting_as(find_owner(directory.root)):  # read the files as the owner, not as root
        directory.refuse_links()
        directory.refuse_strangers()
        backups = _find_backups(console.settings(directory))
        if not arguments.print:
            directory.check()
    unit = make_unit(directory.root, arguments.user, program, backups)
    # Only root may be able to write what the update service runs as root.
    updates = make_update_units(directory.root, program) if is_built() else {}
    if arguments.print:
        print(unit, end="")
        return 0
    systemctl = shutil.which("systemctl")
    if systemctl is None or not BOOTED.is_dir():
        raise OperatorError(
            "systemd is not running here. Start venuebox serve from your service manager."
        )
    if _call(systemctl, "is-active", "--quiet", UNIT.name).returncode:
        with directory.lock():  # raises OperatorError if a box started by hand is running
            pass
    user = _find_user(arguments.user)
    places = [directory.root.parent, *([] if is_built() else [program, sys.executable])]
    _refuse_closed(user, map(str, places))
    _install_program()
    _give_to(directory, user)
    _write_units({UNIT.name: unit} | updates)
    # A running service must be restarted for the new unit to take effect.
    names = [_UPDATE_PATH] * bool(updates) + [UNIT.name]
    for words in (
        ("daemon-reload",), *((verb, name) for name in names for verb in ("enable", "restart"))
    ):  # fmt: skip
        _must(f"systemctl {words[0]} failed", systemctl, *words)
    print(f"{UNIT} written and started. Check it with systemctl status venuebox.")
    if backups and not _may(user, os.W_OK, backups):
        print(
            f"backups cannot be written yet. Plug in the volume with {backups}, and make "
            f"{arguments.user} the owner of that folder.",
            file=sys.stderr,
        )
    return 0


def _install_program() -> None:
    """Install the program, if it is one file that is not installed yet."""
    if is_built() and not is_installed():
        switch(unpack(own_version()))
        link_command()


def _unpack(arguments: argparse.Namespace, _console: Console) -> int:
    """Copy the program into a folder of its own and print the folder. No link is moved."""
    if not is_built():
        raise OperatorError("this program is not one file, so there is nothing to unpack.")
    print(unpack(own_version(), arguments.place.absolute()))
    return 0


def runs_program(place: Path) -> bool:
    """Whether the service runs the program that is installed in `place`."""
    try:
        return f"\nExecStart={_quoted(str(current_program(place)))} " in UNIT.read_text("utf-8")
    except OSError:
        return False


def _refuse_closed(user: pwd.struct_passwd, paths: Iterable[str]) -> None:
    for path in paths:
        if not _may(user, os.X_OK, path):  # for example, if the program is in a private home folder
            raise OperatorError(
                f"{user.pw_name} cannot access {path}. Move it to a place that all users can "
                "read, such as /opt or /srv, or run the service under your own account with --user."
            )


def _find_backups(settings: Settings) -> str:
    """Return `backup.directory` without symbolic links, or "".

    Raises OperatorError if it leads to a system folder, which the service must not write.
    """
    directory = settings.backup.directory
    if not directory:
        return ""
    folder = Path(directory).resolve()
    if is_system_folder(folder):
        raise OperatorError(f"backup.directory leads to the system folder {folder}. Choose another")
    return str(folder)


def make_unit(data: Path, user: str, program: str, backups: str = "") -> str:
    """Return the text of the unit. `backups` is the setting `backup.directory`."""
    paths = [Path(each).resolve() for each in (data, program, backups or "/")]
    is_at_home = any(path.is_relative_to(home) for path in paths for home in _HOMES)
    return _template(UNIT.name).format(
        data=_quoted(str(data)), argument=_argument(data), user=user, program=_quoted(program),
        groups=_groups_line(),
        # With the minus prefix, the service starts even if the volume is not plugged in.
        backups=f"ReadWritePaths=-{_quoted(backups)}\n" if backups else "",
        home="" if is_at_home else _HOME_HIDDEN,
    )  # fmt: skip


def make_update_units(data: Path, program: str) -> dict[str, str]:
    """Return the units that let the portal request an update, by their names."""
    service = _template(_UPDATE_SERVICE).format(program=_quoted(program), data=_argument(data))
    path = _template(_UPDATE_PATH).format(request=_watched(data))
    return {_UPDATE_PATH: path, _UPDATE_SERVICE: service}


def _write_units(units: Mapping[str, str]) -> None:
    for name, text in units.items():
        path = UNIT.with_name(name)
        path.write_text(text, "utf-8")
        path.chmod(0o644)  # the box must be able to read the update units, with any umask


def _template(unit: str) -> str:
    return resources.files("appliance.commands").joinpath(unit).read_text("utf-8")


def takes_requests(data: Path) -> bool:
    """Whether systemd installs the releases that the box in `data` requests."""
    try:
        return f"={_watched(data)}\n" in UNIT.with_name(_UPDATE_PATH).read_text("utf-8")
    except OSError:
        return False


def _watched(data: Path) -> str:
    return str(data / REQUEST).replace("%", "%%")  # in `PathChanged=`, escape only percent signs


def _quoted(path: str) -> str:
    """Escape a path for a systemd unit, as in C (systemd.syntax(7)), and percent signs."""
    return "".join(_ESCAPED.get(sign, sign) for sign in path)


def _argument(path: Path) -> str:
    """Escape a path for a command line in a systemd unit."""
    return _quoted(str(path)).replace("$", "$$")


def _may(user: pwd.struct_passwd, mode: int, path: str) -> bool:
    """Whether the user may access `path` with `mode`, a mode of access(2)."""
    with acting_as(user.pw_uid):
        return os.access(path, mode, effective_ids=True)


def _groups_line() -> str:
    """Return the unit's SupplementaryGroups line: the groups for scanners, if they exist here."""
    there = {entry.gr_name for entry in grp.getgrall()}
    known = [name for name in _SCANNER_GROUPS if name in there]
    return f"SupplementaryGroups={' '.join(known)}\n" if known else ""


def _find_user(name: str) -> pwd.struct_passwd:
    """Return the user `name`. If there is none, create it as a system user.

    Raises OperatorError if the user cannot be created.
    """
    with contextlib.suppress(KeyError):
        return pwd.getpwnam(name)
    useradd = shutil.which("useradd")
    if useradd is None:
        raise OperatorError(
            f"there is no user {name}. Create this user, or specify a different one with --user."
        )
    _must(f"the user {name} cannot be created", useradd, *_SYSTEM_USER, "--", name)
    return pwd.getpwnam(name)


def _give_to(directory: DataDirectory, user: pwd.struct_passwd) -> None:
    """Change the owner of the data directory and its contents.

    Uses folder handles instead of paths, because the previous owner may put symbolic links to other
    users' files into the directory while this function runs. Those files must keep their owner. The
    kernel forbids hard links to them (`fs.protected_hardlinks`, set by systemd).
    """
    for _, folders, files, handle in os.fwalk(directory.root.resolve()):
        os.fchown(handle, user.pw_uid, user.pw_gid)
        for name in (*files, *folders):
            with contextlib.suppress(FileNotFoundError):  # a running service may delete a file
                os.chown(name, user.pw_uid, user.pw_gid, dir_fd=handle, follow_symlinks=False)


def _call(program: str, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603 - a program from PATH; only the user name is input
        [program, *words], capture_output=True, text=True, check=False
    )


def _must(failure: str, program: str, *words: str) -> None:
    """Run a program. If it fails, raise OperatorError with `failure` and the program's error."""
    done = _call(program, *words)
    if done.returncode:
        reason = " ".join(done.stderr.split()) or f"status {done.returncode}"
        raise OperatorError(f"{failure}: {reason}")
