"""An ACME authority (Debian's pebble) with its own DNS, and a box that it can reach."""

import json
import shutil
import socket
import ssl
import subprocess
import urllib.request
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from appliance.clock import SystemClock
from appliance.core.network import own_addresses
from appliance.tls.acme import read_state
from appliance.tls.authority import Names, make_authority, make_leaf
from tests.journeys.box_process import PROGRAM, BoxProcess, clean_environ, found_box
from tests.ports import kept_port
from tests.waiting import until_true

PEBBLE, DNS = shutil.which("pebble"), shutil.which("pebble-challtestsrv")
NAME = "box.example"
PATIENCE = 60.0


class Authority:
    """pebble and its DNS server, as processes. `folder` holds the configuration and the log.

    Both listen on `host`. Every name resolves to `address`.
    """

    def __init__(self, folder, address, host="127.0.0.1"):
        self.folder, self.address, self.host = folder, address, host
        ports = ("port", "management", "dns", "dns_management", "http", "tls")
        for name in ports:
            setattr(self, name, kept_port(self))
        self.ca_file = folder / "directory-authority.pem"
        self.log = folder / "pebble.log"
        self._processes = []
        names = Names(("localhost",), (host,))
        authority = make_authority("Test", names, SystemClock().now())
        leaf = make_leaf(authority, names, SystemClock().now())
        self.ca_file.write_bytes(authority.certificate.public_bytes(Encoding.PEM))
        key, _, certificates = leaf.pem().partition(b"-----BEGIN CERTIFICATE-----")
        (folder / "pebble.key").write_bytes(key)
        (folder / "pebble.pem").write_bytes(b"-----BEGIN CERTIFICATE-----" + certificates)

    @property
    def directory(self):
        return f"https://{self.host}:{self.port}/dir"

    def start(self, **changes):
        """Start both. `changes` are members of pebble's configuration."""
        settings = {
            "listenAddress": f"{self.host}:{self.port}",
            "managementListenAddress": f"{self.host}:{self.management}",
            "certificate": str(self.folder / "pebble.pem"),
            "privateKey": str(self.folder / "pebble.key"),
            "httpPort": self.http,
            "tlsPort": self.tls,
            "certificateValidityPeriod": 90 * 86_400,
            **changes,
        }
        (self.folder / "pebble.json").write_text(json.dumps({"pebble": settings}))
        self._spawn(
            DNS, "-dns01", f"{self.host}:{self.dns}",
            "-management", f"{self.host}:{self.dns_management}",
            "-http01", "", "-https01", "", "-tlsalpn01", "",
            "-defaultIPv4", self.address, "-defaultIPv6", "",
        )  # fmt: skip
        self._spawn(
            PEBBLE, "-config", str(self.folder / "pebble.json"),
            "-dnsserver", f"{self.host}:{self.dns}",
        )  # fmt: skip
        for port in (self.port, self.management, self.dns_management):
            until(lambda port=port: _answers(self.host, port))

    def stop(self):
        """End both."""
        for process in self._processes:
            process.kill()
            process.wait()
        self._processes.clear()

    def tell_dns(self, what, **values):
        """Change the answers of its DNS: `set-default-ipv4`, `add-a`, `set-txt`, `clear-txt`."""
        url = f"http://{self.host}:{self.dns_management}/{what}"
        urllib.request.urlopen(url, json.dumps(values).encode(), timeout=10).close()

    def root(self):
        """Return the root certificate that a phone trusts (PEM)."""
        trusted = ssl.create_default_context(cafile=self.ca_file)
        url = f"https://{self.host}:{self.management}/roots/0"
        with urllib.request.urlopen(url, timeout=10, context=trusted) as answer:
            return answer.read().decode()

    def orders(self):
        """Return the number of orders since the folder was created."""
        return self.log.read_text().count("Added order")

    def issued(self):
        """Return the number of certificates issued."""
        return self.log.read_text().count("Issued certificate serial")

    def _spawn(self, *argv):
        environ = clean_environ({
            "PEBBLE_VA_NOSLEEP": "1", "PEBBLE_WFE_NONCEREJECT": "0", "PEBBLE_AUTHZREUSE": "0",
        })  # fmt: skip
        with self.log.open("ab") as log:
            self._processes.append(
                subprocess.Popen(
                    argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environ
                )
            )


@dataclass
class PublicBox:
    """A box with the public name `NAME`, and the authority that issues its certificate."""

    process: BoxProcess
    authority: Authority
    data: Path

    def start(self):
        """Start it at an address that is not loopback."""
        self.process.spawn(
            "--data", str(self.data), "--host", self.authority.address,
            "--port", str(self.authority.http),
        )  # fmt: skip
        self.process.wait_until_ready()

    def state(self):
        return read_state(self.data / "tls")

    def ended(self, after=None):
        """Wait until an attempt has ended since `after`. Return the state."""
        until(lambda: self.state().ended_at != after)
        return self.state()

    def shown(self, name=NAME, *, root=None):
        """Return the certificate of the box under `name`, verified with `root`."""
        context = ssl.create_default_context(cadata=root)
        if not root:
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        address = (self.authority.address, self.authority.tls)
        with (
            socket.create_connection(address, 10) as plain,
            context.wrap_socket(plain, server_hostname=name) as secure,
        ):
            return x509.load_der_x509_certificate(secure.getpeercert(binary_form=True))

    def run(self, *argv):
        """Run a command on the box's data; return its exit status, output and error."""
        done = subprocess.run(
            [PROGRAM, *argv, "--data", str(self.data)],
            capture_output=True, text=True, check=False, env=self.environ(), timeout=120,
        )  # fmt: skip
        return done.returncode, done.stdout, done.stderr

    def json(self, *argv):
        """Return the JSON that a command prints."""
        return json.loads(self.run(*argv, "--json")[1])

    def check(self, name):
        """Return the status of one check of `venuebox doctor`."""
        found = {one["name"]: one["status"] for one in self.json("doctor")["checks"]}
        return found.get(name)

    def environ(self):
        settings = {k: v for k, v in self.process.settings.items() if k.startswith("VENUEBOX_")}
        return clean_environ(settings)


@contextmanager
def a_public_box(folder, challenge="tls-alpn-01", *, make=None, **settings):
    """Yield a box and an authority, both not started yet. `make` creates the box process."""
    address = next(text for text in own_addresses() if ":" not in text)
    authority = Authority(folder, address)
    founded = found_box(folder)
    box = make(founded) if make else BoxProcess(founded.data, log=folder / "box.log")
    box.port = authority.http
    box.settings |= {
        "VENUEBOX_SERVER_APP_URL": f"https://{NAME}",
        "VENUEBOX_SERVER_TLS_PORT": str(authority.tls),
        "VENUEBOX_SERVER_MDNS": "false",
        "VENUEBOX_ACME_DIRECTORY": authority.directory,
        "VENUEBOX_ACME_AGREE_TERMS": "true",
        "VENUEBOX_ACME_CHALLENGE": challenge,
        "VENUEBOX_ACME_CA_FILE": str(authority.ca_file),
        **settings,
    }
    try:
        yield PublicBox(box, authority, founded.data)
    finally:
        box.kill()
        authority.stop()


def dns_hook(folder, authority, then=""):
    """Write a program that sets the record in the authority's DNS, and then runs `then`."""
    path = folder / "dns-hook"
    url = f"http://{authority.host}:{authority.dns_management}"
    path.write_text(
        "#!/bin/sh\nset -e\n"
        f'[ "$1" = add ] && what=set-txt || what=clear-txt\n'
        f'curl -sf -d "{{\\"host\\":\\"$2.\\",\\"value\\":\\"$3\\"}}" {url}/$what\n'
        f'echo "$1 $2" >> {folder}/hook.log\n{then}\n'
    )
    path.chmod(0o700)
    return str(path)


def until(condition):
    """Wait until `condition()` is true, with time for other programs."""
    until_true(condition, seconds=PATIENCE)


def _answers(host, port):
    try:
        socket.create_connection((host, port), 1).close()
    except OSError:
        return False
    return True
