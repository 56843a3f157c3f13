"""`venuebox service`: let systemd run the box, from now on and after each start of the machine."""

import argparse
import grp
import os
import pwd
import shutil
import subprocess
import sys
from importlib import resources
from pathlib import Path

from appliance.commands.console import Commands, Console, add_command, add_data, add_group
from appliance.data_directory import DataDirectory
from appliance.errors import Trouble

UNIT = Path("/etc/systemd/system/venuebox.service")
_SCANNER_GROUPS = ("dialout", "input")
_HOMES = ("/home", "/root", "/run/user")
_HOME_HIDDEN = "# Nobody's home is visible to it.\nProtectHome=yes\n"


def add(commands: Commands) -> None:
    """Add the command to the command line."""
    group = add_group(commands, "service", "run the box as a service of this machine")
    parser = add_command(group, "install", run, "write and enable the systemd unit")
    add_data(parser)
    parser.add_argument("--user", metavar="U", default="venuebox", help="who runs it")
    parser.add_argument("--print", action="store_true", help="show the unit, and change nothing")


def run(arguments: argparse.Namespace, console: Console) -> int:
    """Write the unit for this program and directory, and start it."""
    directory = console.directory(arguments)
    unit = make_unit(directory.root, arguments.user, find_program())
    if arguments.print:
        print(unit, end="")
        return 0
    directory.check()
    systemctl = shutil.which("systemctl")
    if systemctl is None:
        raise Trouble("there is no systemd here: start venuebox serve from what starts services")
    if os.geteuid() != 0:
        raise Trouble("only root may install a service: run it with sudo")
    _give_to(directory, arguments.user)
    UNIT.write_text(unit, "utf-8")
    for words in (("daemon-reload",), ("enable", "--now", UNIT.name)):
        done = subprocess.run(  # noqa: S603 - fixed words, found above
            [systemctl, *words], capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise Trouble(f"systemctl {words[0]} failed: {' '.join(done.stderr.split())}")
    print(f"{UNIT} written and started: systemctl status venuebox")
    return 0


def make_unit(data: Path, user: str, program: str) -> str:
    """The unit's text. Spaces in paths are written as systemd wants them."""
    text = resources.files("appliance.commands").joinpath("venuebox.service").read_text("utf-8")
    is_at_home = any(Path(home) in (data, *data.parents) for home in _HOMES)
    is_at_home = is_at_home or any(program.startswith(f"{home}/") for home in _HOMES)
    return text.format(
        data=str(data).replace(" ", "\\x20"),
        user=user,
        program=program,
        groups=_groups_line(),
        home="" if is_at_home else _HOME_HIDDEN,
    )


def _groups_line() -> str:
    """The groups that may open scanners, as far as this machine has them."""
    known = [
        name for name in _SCANNER_GROUPS if name in {entry.gr_name for entry in grp.getgrall()}
    ]
    return f"SupplementaryGroups={' '.join(known)}\n" if known else ""


def find_program() -> str:
    """How this program is called, as an absolute path."""
    if getattr(sys, "frozen", False):
        return sys.executable
    called = Path(sys.argv[0])
    found = shutil.which(called) if called.name == "venuebox" else None
    return str(Path(found).absolute()) if found else str(Path(sys.executable).with_name("venuebox"))


def _give_to(directory: DataDirectory, user: str) -> None:
    """Make the user if need be; the data directory becomes theirs."""
    try:
        found = pwd.getpwnam(user)
    except KeyError:
        useradd = shutil.which("useradd")
        if useradd is None:
            raise Trouble(
                f"there is no user {user}: make one, or name another with --user"
            ) from None
        subprocess.run(  # noqa: S603 - fixed words, and a name that the owner gave
            [useradd, "--system", "--no-create-home", "--shell", "/usr/sbin/nologin", "--", user],
            check=True,
        )
        found = pwd.getpwnam(user)
    for path in (directory.root, *directory.root.rglob("*")):
        os.chown(path, found.pw_uid, found.pw_gid, follow_symlinks=False)
