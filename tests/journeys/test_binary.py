"""The built file without Python, privileges or network (`make journey`).

It runs as user nobody in a root that contains only the C library. binary_visitor.py runs the
scenarios in the same namespaces.
"""

import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

import pytest

from tests.journeys.box_process import SLOTS, TABLE, VENUE

PROGRAM = Path(__file__).parents[2] / "dist" / "venuebox"
VISITOR = Path(__file__).with_name("binary_visitor.py")
NOBODY = 65534
# Parts of the C library and the compiler's runtime that the included modules need.
C_LIBRARY = (
    "libm.so.6", "libdl.so.2", "libpthread.so.0", "libutil.so.1", "librt.so.1", "libresolv.so.2",
    "libgcc_s.so.1",
)  # fmt: skip


@pytest.fixture
def empty_root(tmp_path):
    assert PROGRAM.exists(), "there is no dist/venuebox: make binary"
    root = tmp_path / "root"
    for name in ("proc", "tmp", "var/tmp", "srv/box", "srv/program"):
        (root / name).mkdir(parents=True)
    shutil.copy(PROGRAM, root / "venuebox")
    for library in c_library():
        target = root / library.relative_to("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(library.resolve(), target)
    (root / "srv" / "venue.toml").write_text(VENUE + TABLE.format(number=1) + SLOTS, "utf-8")
    for name in ("box", "program"):
        os.chown(root / "srv" / name, NOBODY, NOBODY)
    (root / "srv" / "box").chmod(0o700)
    for name in ("tmp", "var/tmp"):
        (root / name).chmod(0o1777)
    return root


def c_library():
    """Return the libraries that the loader finds for the file, and the rest of the C library."""
    said = subprocess.run(["ldd", PROGRAM], capture_output=True, text=True, check=True).stdout
    found = {Path(path) for path in re.findall(r"(/\S+)", said)}
    folder = next(path.parent for path in found if path.name == "libc.so.6")
    return found | {folder / name for name in C_LIBRARY if (folder / name).exists()}


def visit(root, what):
    """Run binary_visitor.py with loopback only; return its result."""
    done = subprocess.run(
        ["unshare", "--mount", "--net", "--pid", "--fork", "--mount-proc", sys.executable,
         VISITOR, root, what],
        capture_output=True, text=True, check=False, timeout=240,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_built_program_needs_only_the_c_library(empty_root):
    found = visit(empty_root, "loop")

    assert re.match(r"venuebox \d+\.\d+\.\d+\n", found["version"])
    assert "(packaged)" in found["version"], "there is no tz database to lean on here"
    assert found["scans"] == ["checked_in", "already_checked_in"]
    assert set(found["pages"].values()) == {200}, found["pages"]
    assert len([path for path in found["pages"] if path.startswith("/static/")]) > 5
    assert found["status"] == 0
    assert found["replayed"]
    assert found["arabic"] == 1
    failing = {check["name"] for check in found["doctor"] if check["status"] == "fail"}
    assert failing == set()


def test_the_built_program_works_with_full_and_noexec_temporary_directories(empty_root):
    found = visit(empty_root, "hostile")

    assert found == {"health": 200, "status": 0, "written": False}


def test_commands_run_as_root_continue_as_the_owner_of_the_directory():
    with tempfile.TemporaryDirectory(prefix="venuebox-") as name:
        data, program = Path(name, "box"), shutil.copy(PROGRAM, name)
        Path(name).chmod(0o755)
        venue = Path(name, "venue.toml")
        venue.write_text(VENUE + TABLE.format(number=1) + SLOTS, "utf-8")
        called = partial(subprocess.run, capture_output=True, text=True, check=True, timeout=60)
        called([program, "init", "--data", data, "--venue", venue])
        for path in (data, *data.rglob("*")):
            os.chown(path, NOBODY, NOBODY)

        for words in (["backup"], ["restore", "--latest"], ["backup", "kit"]):
            called([program, *words, "--data", data])

        made = (data, *data.rglob("*"))
        assert {path.stat().st_uid for path in made} == {NOBODY}
        assert not any(path.stat().st_mode & 0o077 for path in made)


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The program as installed by the single file."""
    words = [PROGRAM, "service", "unpack", tmp_path_factory.mktemp("opt") / "venuebox"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    return Path(done.stdout.strip(), "venuebox")


def test_an_installed_program_copies_backups_in_a_child_process(installed, tmp_path):
    data, venue = tmp_path / "box", tmp_path / "venue.toml"
    venue.write_text(VENUE + TABLE.format(number=1) + SLOTS, "utf-8")
    called = partial(subprocess.run, capture_output=True, text=True, check=False, timeout=60)
    called([installed, "init", "--data", data, "--venue", venue])
    called([installed, "backup", "--data", data])
    environ = {"VENUEBOX_BACKUP_TARGET": "sftp://box@127.0.0.1:9/backups"}

    for program in (installed, PROGRAM):
        done = called([program, "backup", "target", "--data", data], env=environ)

        assert done.returncode == 1
        assert "127.0.0.1" in done.stderr, "the child says why"


def test_systemd_is_notified_when_the_program_is_ready_alive_and_stopping(
    systemd, installed, tmp_path, unused_tcp_port
):
    """Start it like systemd. The watchdog requires that the program stays one process."""
    environ = {"NOTIFY_SOCKET": systemd.getsockname(), "WATCHDOG_USEC": "2000000",
               "VENUEBOX_SERVER_TLS_PORT": "0", "VENUEBOX_SERVER_MDNS": "false"}  # fmt: skip
    data, port = tmp_path / "box", str(unused_tcp_port)
    serve = ["serve", "--data", data, "--host", "127.0.0.1", "--port", port]
    first = subprocess.Popen(
        ["/bin/sh", "-c", 'export WATCHDOG_PID=$$; exec "$@"', "sh", installed, *serve],
        env=environ, stdout=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    try:
        heard = [hear(systemd) for _ in range(4)]
        os.killpg(first.pid, signal.SIGTERM)
        status = first.wait(20)
    finally:
        first.kill()
        first.wait()

    assert sorted(said for said, _ in heard) == ["READY=1", *["WATCHDOG=1"] * 3]
    assert status == 0
    while (last := hear(systemd))[0] == "WATCHDOG=1":
        pass
    assert last[0] == "STOPPING=1"
    [box] = {process for _, process in (*heard, last)}
    assert box == first.pid


@pytest.fixture
def systemd(tmp_path):
    """Systemd's end of the socket, with the senders' credentials."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(str(tmp_path / "notify"))
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        listening.settimeout(30)
        yield listening


def hear(systemd):
    """Return the next message and the id of the process that sent it."""
    said, [(_, _, credentials)], _, _ = systemd.recvmsg(200, socket.CMSG_SPACE(12))
    return said.decode(), struct.unpack("3i", credentials)[0]


def said(option):
    done = subprocess.run([PROGRAM, "version", option], capture_output=True, text=True, check=True)
    return done.stdout
