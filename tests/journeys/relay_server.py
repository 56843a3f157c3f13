"""A relay set up as in docs/operations/relay.md: Debian's sshd and HAProxy, in a network.

Its /etc, /run and users are separate from the machine's, in mount namespaces.
"""

import os
import shutil
import signal
import socket
import subprocess
import time
from contextlib import suppress
from pathlib import Path

from tests.namespaces import within

SSHD, HAPROXY = "/usr/sbin/sshd", "/usr/sbin/haproxy"
_RECIPE = Path(__file__).parents[2] / "packaging" / "relay"
ADD = _RECIPE / "venuebox-relay-add"
_PATIENCE = 30.0


class RelayServer:
    """sshd and HAProxy as processes. As a context manager, it starts them and kills them."""

    def __init__(self, folder: Path, network: str, address: str, resolver: Path) -> None:
        self.folder, self.network, self.address = folder, network, address
        self._etc, self._run = folder / "etc", folder / "run"
        self._resolver = resolver
        self.processes: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self):
        self._install()
        self.start()
        return self

    def __exit__(self, *_):
        self.kill()

    def start(self):
        """Start both programs, and wait until they listen."""
        with (self.folder / "log").open("ab") as log:
            for argv in ((SSHD, "-D", "-e"), (HAPROXY, "-db", "-f", "/etc/haproxy/haproxy.cfg")):
                self.processes[argv[0]] = subprocess.Popen(
                    [*self._wrapper, *argv], stdin=subprocess.DEVNULL, stdout=log, stderr=log
                )
        until = time.monotonic() + _PATIENCE
        while not all(within(self.network, self._answers, port) for port in (22, 80, 443)):
            assert time.monotonic() < until, self.log()
            time.sleep(0.05)

    def kill(self):
        """Kill both programs and close every connection."""
        for process in self.processes.values():
            process.kill()
            process.wait()
        # Leave other relays alone: after a lost connection, their boxes may wait five minutes.
        sessions = self.run("pgrep", "-f", "^sshd: venuebox-relay", check=False).split()
        here = subprocess.check_output(["ip", "netns", "pids", self.network], text=True).split()
        for pid in {*sessions} & {*here}:
            with suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)

    def add(self, name, key, *, check=True):
        """Run `venuebox-relay-add` as documented. Return its output."""
        return self.run(ADD, name, key, check=check)

    def run(self, *argv, check=True):
        """Run a command on the relay; return its output."""
        done = subprocess.run(
            [*self._wrapper, *argv], capture_output=True, text=True, check=False, timeout=60
        )
        assert done.returncode == 0 or not check, done.stderr
        return done.stdout.strip()

    def log(self):
        """Return the latest log lines of both programs."""
        return (self.folder / "log").read_text("utf-8", "replace")[-2000:]

    @property
    def _wrapper(self):
        mounts = f"mount --bind {self._etc} /etc && mount --bind {self._run} /run && "
        return ["ip", "netns", "exec", self.network, "sh", "-c", f'{mounts} exec "$@"', "sh"]

    def _install(self):
        """Install the relay as documented."""
        shutil.copytree("/etc", self._etc, symlinks=True)
        (self._etc / "resolv.conf").unlink(missing_ok=True)
        shutil.copy(self._resolver, self._etc / "resolv.conf")
        for name in ("sshd", "haproxy"):
            (self._run / name).mkdir(parents=True)
        drop_ins = self._etc / "ssh" / "sshd_config.d"
        shutil.copy(_RECIPE / "sshd.conf", drop_ins / "venuebox-relay.conf")
        shutil.copy(_RECIPE / "haproxy.cfg", self._etc / "haproxy" / "haproxy.cfg")
        own = self._etc / "venuebox-relay"
        self.run("install", "-d", "-m", "755", "/etc/venuebox-relay")
        (own / "names.map").touch()
        (own / "address").write_text(f"{self.address}\n")
        self.run("useradd", "--system", "--shell", "/usr/sbin/nologin", "venuebox-relay")
        self.run("ssh-keygen", "-A")

    def _answers(self, port):
        with socket.socket() as client:
            return client.connect_ex((self.address, port)) == 0
