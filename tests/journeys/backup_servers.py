"""Servers for copies of backups: OpenSSH's sshd with SFTP, and moto's S3 server."""

import os
import pwd
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.ports import held_port

SSHD = "/usr/sbin/sshd"
KEY_ID, SECRET = "AKIA-venuebox", "planted-secret-of-the-storage"
_PATIENCE = 30.0


@dataclass
class SftpServer:
    """A running sshd. Keys in `authorized` may log in as the user of this process."""

    folder: Path
    port: int
    host: str = "127.0.0.1"
    wrapper: tuple[str, ...] = ()  # a command that runs sshd
    process: subprocess.Popen[bytes] | None = None

    @property
    def authorized(self):
        return self.folder / "authorized_keys"

    @property
    def copies(self):
        """Return the folder of `url`."""
        return self.folder / "copies"

    @property
    def url(self):
        user = pwd.getpwuid(os.getuid()).pw_name
        return f"sftp://{user}@{self.host}:{self.port}{self.copies}"

    def admit_user(self, key):
        """Create the SSH key `key`, and authorise no other key."""
        _keygen(key)
        self.authorized.write_bytes(key.with_name(f"{key.name}.pub").read_bytes())

    def change_host_key(self):
        """Replace the host key, and let sshd read it."""
        _keygen(self.folder / "host_key")
        self.process.send_signal(signal.SIGHUP)

    def shown_host_key(self):
        """Return the current host key of the server as a line of known_hosts."""
        command = ["ssh-keyscan", "-t", "ed25519", "-p", str(self.port), "127.0.0.1"]
        return subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=30
        ).stdout

    def fingerprint(self):
        """Return the fingerprint of the host key: SHA256:…"""
        told = subprocess.check_output(["ssh-keygen", "-lf", self.folder / "host_key"], text=True)
        return told.split()[1]

    @contextmanager
    def running(self):
        if os.getuid() == 0:
            Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)  # required if sshd runs as root
        config = {
            "Port": self.port, "ListenAddress": self.host, "HostKey": self.folder / "host_key",
            "PidFile": "none", "AuthorizedKeysFile": self.authorized, "StrictModes": "no",
            "UsePAM": "no", "PasswordAuthentication": "no", "Subsystem": "sftp internal-sftp",
        }  # fmt: skip
        file = self.folder / "sshd_config"
        lines = [*config.items(), ("HostKey", self.folder / "rsa_host_key")]
        file.write_text("".join(f"{name} {value}\n" for name, value in lines))
        command = [*self.wrapper, SSHD, "-D", "-f", file, "-E", self.folder / "log"]
        # A server in a separate network cannot be asked from here.
        with _process(command, None if self.wrapper else self.port) as self.process:
            yield self


def an_sftp_server(folder, port):
    """Return an sshd, not started yet, with two kinds of host keys, as in distributions."""
    folder.mkdir()
    server = SftpServer(folder, port)
    server.authorized.touch(0o600)
    _keygen(folder / "host_key")
    _keygen(folder / "rsa_host_key", "rsa")
    return server


def _keygen(path, kind="ed25519"):
    path.unlink(missing_ok=True)
    subprocess.run(["ssh-keygen", "-q", "-t", kind, "-N", "", "-f", path], check=True, timeout=30)


@contextmanager
def an_s3_server():
    """Run an S3 server with the bucket `backups`; yield its endpoint."""
    with held_port() as port:
        endpoint = f"http://127.0.0.1:{port}"
        command = [
            Path(sys.executable).with_name("moto_server"),
            "-H",
            "127.0.0.1",
            "-p",
            str(port),
        ]
        with _process(command, port):
            bucket = urllib.request.Request(f"{endpoint}/backups", method="PUT")  # noqa: S310 - http
            urllib.request.urlopen(bucket, timeout=_PATIENCE).close()  # noqa: S310 - http
            yield endpoint


@contextmanager
def _process(command, port):
    """Run a server until the block ends; wait until it answers at `port`, if given."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        until = time.monotonic() + _PATIENCE
        while port is not None and not _answers(port):
            assert process.poll() is None, f"{command[0]} ended"
            assert time.monotonic() < until, f"{command[0]} does not listen"
            time.sleep(0.05)
        yield process
    finally:
        process.terminate()
        process.wait(_PATIENCE)


def _answers(port):
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0
