"""A signed release replaces the program only if it works. Otherwise the old one continues."""

import io
import os
import tarfile
import time
from contextlib import closing, suppress
from functools import partialmethod
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from runpy import run_path
from threading import Thread

import apsw
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from appliance import program as program_module
from appliance.clock import SystemClock
from appliance.commands import service as service_command
from appliance.commands import update as update_command
from appliance.commands.update import Progress, Service, open_release, update
from appliance.core.data_directory import DataDirectory
from appliance.core.errors import OperatorError
from appliance.core.files import exclusive
from appliance.database.migrate import newest_schema
from appliance.program import switch, unpack
from appliance.release import read_release_key, read_update_record, request_update
from tests.promises.webhooks.test_certificates import Certificate

pytestmark = pytest.mark.process

release = run_path(str(Path(__file__).parents[3] / "packaging" / "release.py"))["make_release"]
KEY, STRANGER = Ed25519PrivateKey.generate(), Ed25519PrivateKey.generate()
# A program that records its calls. As a single file it copies itself, like the built one.
SCRIPT = """#!/bin/sh
echo "{version} $*" >> {log}
case "$1" in
    {fails}) echo "venuebox: it failed" >&2; exit 1 ;;
    service) mkdir {place}/{version} && cp "$0" {place}/{version} && echo {place}/{version} ;;
    backup) echo "/backups/b.tar.age: 1 MB, verified" ;;
    doctor) echo '{{"checks": [{{"name": "box", "status": "ok"}}]}}' ;;
esac
"""


class Host:
    """A machine with program 1.0, whose service reports whether it is healthy."""

    def __init__(self, folder):
        self.place, self.log, self.folder = folder / "opt", folder / "log", folder
        self.healthy, self.done, self.refused = [True], [], 0
        self.data = DataDirectory(folder / "data")
        self.data.make_folders()
        for path in (*self.data.databases, self.data.master_key_file):
            path.touch()
        (self.place / "1.0").mkdir(parents=True)
        self.install("nothing")
        switch(self.place / "1.0", self.place)

    def install(self, fails):
        program = self.place / "1.0" / "venuebox"
        program.write_bytes(self.script("1.0", fails))
        program.chmod(0o755)

    def script(self, version, fails="nothing"):
        values = {"version": version, "log": self.log, "fails": fails, "place": self.place}
        return SCRIPT.format(**values).encode()

    @property
    def version(self):
        """Return the current version, which must be complete."""
        folder = (self.place / "current").resolve()
        assert os.access(folder / "venuebox", os.X_OK)
        return folder.name

    def is_healthy(self):
        return self.healthy.pop(0) if len(self.healthy) > 1 else self.healthy[0]

    def restart(self):
        self.done.append("restart")
        if self.refused > 0:
            self.refused -= 1
            raise OperatorError("Job for venuebox.service failed")

    def stage(self):
        record = read_update_record(self.data.root)
        return (record.stage, record.version) if record else None

    def update(self, content):
        path = self.folder / "a.release"
        path.write_bytes(content)
        service = Service(
            self.restart, lambda: self.done.append("stop"), self.is_healthy, watch_seconds=2.5,
        )  # fmt: skip
        progress = Progress(self.data, SystemClock())
        with open_release(str(path), self.folder) as file:
            data = self.data.root
            update(file, KEY.public_key(), self.place, data, service, "1.0", progress)

    def calls(self):
        """Return the calls of programs in order, each with its command."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        return [tuple(line.split()[:2]) for line in lines]

    def left(self):
        return [path.name for path in (self.place / "staging").iterdir()]


@pytest.fixture
def host(tmp_path, monkeypatch):
    monkeypatch.setattr("appliance.commands.update._PAUSE_SECONDS", 0.5)
    return Host(tmp_path)


def test_an_update_makes_a_new_folder_and_moves_the_link_to_it(host):
    host.update(release(host.script("1.1"), KEY, version="1.1"))
    assert host.calls() == [("1.0", "backup"), ("1.1", "service")]
    assert host.version == "1.1"
    assert (host.place / "1.0" / "venuebox").exists()
    assert (host.done, host.left()) == (["restart"], [])
    assert host.stage() == ("done", "1.1")


@pytest.mark.parametrize(
    ("key", "changes"),
    [
        (STRANGER, {"version": "1.1"}),
        (KEY, {"version": "1.0"}),
        (KEY, {"version": "0.9"}),
        (KEY, {"version": "1.1", "machine": "riscv"}),
        (KEY, {"version": "2.0", "minimum": "1.5"}),
        (KEY, {"version": "1.1", "sha256": "00" * 32}),
        (KEY, {"version": "1.1", "size": 1}),
        (KEY, {"version": 1.1}),
    ],
)
def test_a_release_that_is_not_newer_or_not_for_this_machine_changes_nothing(host, key, changes):
    with pytest.raises(OperatorError):
        host.update(release(host.script("1.1"), key, **changes))
    assert (host.calls(), host.done, host.left()) == ([], [], [])
    assert host.version == "1.0"


def malformed_sparse_file():
    info = tarfile.TarInfo("manifest.json")
    info.pax_headers = {"GNU.sparse.map": "x"}
    return info.tobuf(tarfile.PAX_FORMAT)


@pytest.mark.parametrize(("old", "new"), [("backup", "nothing"), ("nothing", "service")])
def test_an_update_without_a_backup_or_a_program_folder_replaces_nothing(host, old, new):
    host.install(old)
    with pytest.raises(OperatorError, match="it failed"):
        host.update(release(host.script("1.1", fails=new), KEY, version="1.1"))
    assert (host.done, host.left()) == ([], [])
    assert host.version == "1.0"


@pytest.mark.parametrize("upgrades", [False, True])
def test_a_program_that_never_responds_is_replaced_by_the_previous_one(host, upgrades):
    host.healthy = [False]
    newest = upgraded(host) if upgrades else newest_schema() + 1
    with pytest.raises(OperatorError):
        host.update(release(host.script("1.1"), KEY, version="1.1", schema=newest))
    assert host.version == "1.0"
    assert host.done == ["restart", "stop", "restart"]
    assert (("1.0", "restore") in host.calls()) is upgrades
    assert host.stage() == ("went_back", "1.1")


def upgraded(host):
    """Upgrade a database as a newer program does, and return its schema number."""
    newest = newest_schema() + 1
    with closing(apsw.Connection(str(host.data.databases[0]))) as connection:
        connection.pragma("user_version", newest)
    return newest


def test_a_power_cut_during_the_rollback_leaves_a_program_that_can_read_the_data(host, monkeypatch):
    host.healthy, newest = [False], upgraded(host)

    class PowerCut(BaseException):
        pass

    call = update_command.call

    def cut(words, **environ):
        if "restore" in words:
            raise PowerCut
        return call(words, **environ)

    monkeypatch.setattr(update_command, "call", cut)
    with pytest.raises(PowerCut):
        host.update(release(host.script("1.1"), KEY, version="1.1", schema=newest))
    assert host.version == "1.1"


def test_the_new_program_stays_if_the_data_cannot_be_restored_for_the_old_one(host):
    host.install("restore")
    host.healthy, newest = [False], upgraded(host)
    with pytest.raises(OperatorError, match="it failed"):
        host.update(release(host.script("1.1"), KEY, version="1.1", schema=newest))
    assert host.version == "1.1"
    assert host.done == ["restart", "stop", "restart"]
    assert host.stage() == ("stays", "1.1")


@pytest.mark.parametrize("refused", [1, 2])
def test_a_program_that_the_service_cannot_start_is_replaced_by_the_previous_one(host, refused):
    host.healthy, host.refused = [False], refused
    with pytest.raises(OperatorError):
        host.update(release(host.script("1.1"), KEY, version="1.1"))
    assert host.version == "1.0"
    assert host.done == ["restart", "stop", "restart"]
    assert host.stage() == ("went_back", "1.1")


def with_a_malformed_program(content):
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        start = archive.getmember("venuebox").offset
    return content[:start] + malformed_sparse_file()


@pytest.mark.parametrize(
    "spoil",
    [
        *(lambda content, n=length: content[:n] for length in (0, 600, 12_000, 25_000)),
        lambda _: b"MZ" * 600,
        lambda _: b"\0" * 10240,
        lambda _: malformed_sparse_file(),
        with_a_malformed_program,
        lambda content: content.replace(b'"minimum": "0"', b'"minimum": "1"'),
    ],
)
def test_an_incomplete_or_modified_release_changes_nothing(host, spoil):
    content = release(host.script("1.1") + b"#" * 30_000, KEY, version="1.1")
    assert spoil(content) != content
    with pytest.raises(OperatorError):
        host.update(spoil(content))
    assert (host.calls(), host.done, host.left()) == ([], [], [])
    assert host.version == "1.0"


@pytest.mark.parametrize("member", ["manifest.json", "venuebox"])
def test_an_unsigned_header_is_rejected_quickly(host, member):
    content = release(host.script("1.1"), KEY, version="1.1")
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        start = archive.getmember(member).offset
    digits = tarfile.TarInfo("digits")
    digits.type, digits.size = tarfile.XHDTYPE, 200 * tarfile.BLOCKSIZE
    header = digits.tobuf() + b"1" * digits.size
    began = time.process_time()
    with pytest.raises(OperatorError):
        host.update(content[:start] + header + content[start:])
    assert time.process_time() - began < 1
    assert (host.calls(), host.left()) == ([], [])


@pytest.mark.parametrize(("schema", "stays"), [(0, "1.0"), (1, "1.1")])
def test_rolling_back_does_not_lose_bookings_made_with_the_new_schema(host, schema, stays):
    host.healthy = [True, False]
    newest = newest_schema() + schema
    with pytest.raises(OperatorError):
        host.update(release(host.script("1.1"), KEY, version="1.1", schema=newest))
    assert host.version == stays
    assert ("1.0", "restore") not in host.calls()
    assert host.stage()[0] == {"1.0": "went_back", "1.1": "stays"}[stays]


class Site(BaseHTTPRequestHandler):
    """An https server that redirects to http, fails, or sends one byte at a time."""

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.send_response({"/plain": 302, "/missing": 404}.get(self.path, 200))
        self.send_header("Location", f"http://localhost:{self.server.plain}/")
        self.send_header("Content-Length", {"/length": "many", "/slow": "99"}.get(self.path, "0"))
        self.end_headers()
        with suppress(OSError):
            while self.path == "/slow":
                self.wfile.write(b"#")
                time.sleep(0.05)


@pytest.fixture
def site(tmp_path, monkeypatch):
    authority = Certificate("Own authority", authority=True)
    (tmp_path / "authority.pem").write_text(authority.pem, "ascii")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "authority.pem"))
    servers = [ThreadingHTTPServer(("127.0.0.1", 0), Site) for _ in range(2)]
    context = Certificate("localhost", issuer=authority).context()
    servers[0].socket = context.wrap_socket(servers[0].socket, server_side=True)
    for server in servers:
        server.plain = servers[1].server_port
        Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    yield f"https://localhost:{servers[0].server_port}"
    for server in servers:
        server.shutdown()
        server.socket.close()


@pytest.mark.parametrize("path", ["/slow", "/plain", "/missing", "/length", "/é", "/a b"])
def test_a_site_without_a_release_is_refused_before_the_timeout(site, tmp_path, monkeypatch, path):
    monkeypatch.setattr(update_command, "_DOWNLOAD_SECONDS", 0.2)
    with pytest.raises(OperatorError):
        open_release(site + path, tmp_path)


def test_a_program_without_a_release_key_cannot_be_updated():
    with pytest.raises(OperatorError):
        read_release_key()


@pytest.fixture
def served(box, tmp_path, monkeypatch):
    """A box in a systemd service. `venuebox update` installs releases signed with KEY."""
    host = Host(tmp_path / "host")
    host.data = DataDirectory(box.data)
    programs = tmp_path / "bin"
    programs.mkdir()
    systemctl = programs / "systemctl"
    systemctl.write_text(f'#!/bin/sh\necho "$@" >> {host.folder}/systemctl\n')
    systemctl.chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    unit = tmp_path / "venuebox.service"
    program = host.place / "current" / "venuebox"
    unit.write_text(f"\nExecStart={program} serve --data {box.data}\n", "utf-8")
    for module in (update_command, service_command):
        monkeypatch.setattr(module, "UNIT", unit)
        monkeypatch.setattr(module, "BOOTED", tmp_path)
    monkeypatch.setattr(program_module, "PLACE", host.place)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(update_command, "read_release_key", KEY.public_key)
    monkeypatch.setattr(update_command, "own_version", lambda: "1.0")
    monkeypatch.setattr(Service, "__init__", partialmethod(Service.__init__, watch_seconds=1.5))
    return host


def test_the_release_that_the_portal_requested_is_installed(box, served, monkeypatch):
    path = served.folder / "a.release"
    path.write_bytes(release(served.script("1.1"), KEY, version="1.1"))
    monkeypatch.setattr(update_command, "open_release", lambda *_: path.open("rb"))
    request_update(box.data, "https://releases.example/a", 1)
    assert served.stage() == ("asked", "")
    assert box("update") == 0
    assert served.version == "1.1"
    assert served.stage() == ("done", "1.1")


@pytest.mark.parametrize("asked", ["http://example.org/a", "file:///etc/passwd", "pipe", "nothing"])
def test_a_request_without_an_https_address_is_refused_and_the_reason_stored(box, served, asked):
    if asked == "pipe":
        os.mkfifo(box.data / "update-request")
    elif asked != "nothing":
        request_update(box.data, asked, 1)
    assert box("update") == 1
    record = read_update_record(box.data)
    assert (record.stage, record.version) == ("failed", "")
    assert record.trouble in box.err
    assert served.version == "1.0"


def test_two_updates_cannot_run_at_the_same_time(box, served, monkeypatch):
    monkeypatch.setattr(update_command, "_LOCK_SECONDS", 0)
    request_update(box.data, "https://releases.example/a", 1)
    with exclusive(served.place / "staging", 0, "held"):
        assert box("update") == 1
    assert read_update_record(box.data).stage == "asked"


@pytest.mark.parametrize("mode", [0o777, 0o775])
def test_a_program_folder_that_other_users_can_write_to_is_refused(host, mode):
    host.place.chmod(mode)
    with pytest.raises(OperatorError):
        host.update(release(host.script("1.1"), KEY, version="1.1"))
    assert host.calls() == []


def test_the_single_file_program_unpacks_completely_and_removes_old_versions(host, monkeypatch):
    unpacked = host.folder / "unpacked"
    (unpacked / "web").mkdir(parents=True)
    (unpacked / "venuebox").write_text("the program")
    (unpacked / "web" / "page").write_text("a page")
    monkeypatch.setattr("sys._MEIPASS", str(unpacked), raising=False)
    (host.place / "0.9").mkdir()
    (host.place / "staging" / "program").mkdir()

    made = [unpack("1.1", host.place), unpack("1.0", host.place)]

    assert [path.name for path in made] == ["1.1", "1.0-2"]
    assert {path.name for path in host.place.iterdir()} == {"1.0", "1.0-2", "current", "staging"}
    files = {str(path.relative_to(made[1])) for path in made[1].rglob("*") if path.is_file()}
    assert files == {"venuebox", "_internal/web/page"}
    assert (host.version, host.left()) == ("1.0", [])


@pytest.mark.parametrize("libraries", [{}, {"LD_LIBRARY_PATH": "/opt/lib"}])
def test_child_processes_of_the_single_file_program_get_the_original_environment(libraries):
    start = run_path(str(Path(__file__).parents[3] / "packaging" / "start.py"))
    environ = {"PATH": "/bin", "_PYI_ARCHIVE_FILE": "/usr/local/bin/venuebox",
               "_PYI_APPLICATION_HOME_DIR": "/var/cache/x", "LD_LIBRARY_PATH": "/var/cache/x",
               **{f"{name}_ORIG": text for name, text in libraries.items()}}  # fmt: skip

    start["restore_environment"](environ)

    assert environ == {"PATH": "/bin", **libraries}
