"""A box on a local network: https with its own certificate, and a partner program."""

import json
import re
import shlex
import subprocess
import uuid
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from appliance.core.network import own_addresses
from tests.journeys.box_process import BoxProcess, clean_environ, found_box
from tests.journeys.partner_programs import wish
from tests.ports import kept_port
from tests.readme import ROOT

_TOLD = "http://riad-atlas.local:8080"  # the guide's example of a box on the local network


@dataclass(frozen=True)
class HouseBox:
    """Its http URL, the https URL of its test environment, and a test key."""

    plain: str
    secure: str
    key: str
    folder: Path

    def run(self, *program, trusting):
        """Run a program; with `trusting`, first run the guide's commands in the same shell."""
        lines = [_commands(self.plain)] if trusting else []
        lines.append(shlex.join(str(word) for word in program))
        environ = clean_environ({"SERVICE_URL": self.secure, "SERVICE_KEY": self.key})
        return subprocess.run(
            ["bash", "-c", "set -euo pipefail\n" + "\n".join(lines)],
            capture_output=True, text=True, check=False, cwd=self.folder, timeout=90, env=environ,
        )  # fmt: skip


@contextmanager
def a_house_box(folder):
    """Start a box at an address that is not loopback."""
    address = next(text for text in own_addresses() if ":" not in text)
    founded = found_box(folder)
    box = BoxProcess(founded.data, log=folder / "box.log")
    box.port, secure = kept_port(box), kept_port(box)
    box.settings |= {"VENUEBOX_SERVER_TLS_PORT": str(secure), "VENUEBOX_SERVER_MDNS": "false"}
    box.spawn("--data", str(founded.data), "--host", address, "--port", str(box.port))
    try:
        box.wait_until_ready()
        yield HouseBox(
            f"http://{address}:{box.port}",
            f"https://{address}:{secure}/test",
            founded.keys["test"],
            folder,
        )
    finally:
        box.kill()


def check_trust(box, *program):
    """Check that a booking program books over https once it trusts the authority."""
    done = box.run(*program, *wish(f"house-{uuid.uuid4()}"), trusting=True)

    assert done.returncode == 0, done.stderr
    booked = json.loads(done.stdout.splitlines()[-1])
    assert booked["status"] == "confirmed"


def _commands(plain):
    guide = (ROOT / "docs" / "partners" / "guide.md").read_text("utf-8")
    (commands,) = [
        text for text in re.findall(r"```bash\n(.*?)\n```", guide, re.DOTALL) if _TOLD in text
    ]
    return commands.replace(_TOLD, plain)
