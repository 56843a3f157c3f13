"""Debian's PostgreSQL on a Unix socket, which a test can start, query, kill and restart."""

import atexit
import os
import shutil
import signal
import subprocess
import tempfile
import time
from contextlib import suppress
from pathlib import Path

PROGRAMS = max(Path("/usr/lib/postgresql").glob("*/bin"), default=Path("/nowhere"))
PATIENCE = 60.0


class Postgres:
    """A cluster in its own folder. It runs as Debian's user, because PostgreSQL refuses root."""

    def __init__(self, **settings):
        """`settings` are parameters of the server, such as `fsync="off"`."""
        # Not in pytest's own folder, which no other user may enter.
        self.folder = Path(tempfile.mkdtemp(prefix="venuebox-postgres-"))
        atexit.register(shutil.rmtree, self.folder, ignore_errors=True)
        self.settings = {"listen_addresses": "", "max_connections": "300"} | settings
        self.process = None
        self.within = []  # a command that starts it, such as unshare
        self._user = "postgres" if os.getuid() == 0 else Path.home().owner()
        self._become = []
        if os.getuid() == 0:
            shutil.chown(self.folder, "postgres", "postgres")
            same = ["--reuid=postgres", "--regid=postgres", "--init-groups"]
            self._become = ["setpriv", *same, "env", "-C", str(self.folder)]
        self._run("initdb", "-D", str(self.cluster), "-A", "trust", "-E", "UTF8", "--no-sync")

    @property
    def cluster(self):
        return self.folder / "cluster"

    def url(self, database="venues", **more):
        """The setting `mirror.url` for this server."""
        query = "&".join(f"{name}={value}" for name, value in more.items())
        return f"postgresql://{self._user}@/{database}?host={self.folder}{'&' * bool(more)}{query}"

    def start(self):
        """Start it and wait until it answers."""
        set_ = [arg for name, value in self.settings.items() for arg in ("-c", f"{name}={value}")]
        argv = [PROGRAMS / "postgres", "-D", self.cluster, "-k", self.folder, *set_]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [*self.within, *self._become, *argv],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        until = time.monotonic() + PATIENCE
        while self._ask("postgres", "SELECT 1").returncode and time.monotonic() < until:
            status = self.process.poll()
            assert status is None, f"{status}: {(self.folder / 'log').read_text('utf-8')[-2000:]}"
            time.sleep(0.05)
        return self

    def create(self, database="venues"):
        """Create a database, as an owner does."""
        self.ask(f"CREATE DATABASE {database}", "postgres")
        return self.url(database)

    def ask(self, sql, database="venues"):
        """Run a query and return its lines, with | between columns."""
        done = self._ask(database, sql)
        assert done.returncode == 0, done.stderr
        return done.stdout.split("\n")[:-1]

    def kill(self):
        """Kill all its processes, as in a power cut."""
        killed = self.hang()  # so that it starts no other process meanwhile
        for pid in (self._main_process(), *killed):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()
        while any(is_running(pid) for pid in killed):  # these processes still use its memory
            time.sleep(0.01)
        (self.cluster / "postmaster.pid").unlink(missing_ok=True)

    def processor(self):
        """Return the processor seconds of all its processes, including ended ones."""
        main, spent = self._main_process(), 0
        children = Path(f"/proc/{main}/task/{main}/children").read_text("ascii").split()
        for pid in (main, *children):
            with suppress(OSError):
                fields = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()
                spent += sum(map(int, fields[11:15]))
        return spent / os.sysconf("SC_CLK_TCK")

    def stop(self):
        """Stop it without waiting for its clients."""
        if self.process is not None and self.process.poll() is None:
            os.kill(self._main_process(), signal.SIGINT)
            self.process.wait(PATIENCE)

    def hang(self):
        """Pause all its processes, so that it does not answer. Return their ids."""
        return self._signal_all(signal.SIGSTOP)

    def wake(self):
        """Continue the paused processes."""
        self._signal_all(signal.SIGCONT)

    def _signal_all(self, number):
        main = self._main_process()
        os.kill(main, number)
        children = Path(f"/proc/{main}/task/{main}/children").read_text("ascii").split()
        for pid in map(int, children):
            with suppress(ProcessLookupError):
                os.kill(pid, number)
        return [int(child) for child in children]

    def _main_process(self):
        return int((self.cluster / "postmaster.pid").read_text("ascii").split()[0])

    def _ask(self, database, sql):
        return subprocess.run(
            ["psql", "-XAtq", "-h", self.folder, "-p", self.settings.get("port", "5432"),
             "-U", self._user, "-c", sql, database],
            capture_output=True, text=True, check=False,
        )  # fmt: skip

    def _run(self, program, *argv):
        done = subprocess.run(
            [*self._become, PROGRAMS / program, *argv], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr


def is_running(pid):
    """Whether the process has not ended, even if nobody has read its exit status."""
    try:
        return Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
