"""Schemathesis against the real process, from its own document (interface, sections 2 to 8)."""

import json
import os
import subprocess
import sys
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

HOOKS = Path(__file__).with_name("schemathesis_hooks.py")
ROOT = Path(__file__).parents[2]
SEED = 20261121
EXAMPLES = 60  # of each operation in each phase: about 10 seconds on an idle machine
RECEIVER = "127.0.0.1:9009"  # the one that schemathesis_hooks.py leaves
VENUE = """
name = "Riad Atlas"
slug = "riad-atlas"
status = "active"
reservation_mode = "free"
auto_confirm = true
request_expiry_hours = 24
currency = "MAD"
time_zone = "Africa/Casablanca"
evening_ends_at = "06:00"
"""
TABLE = """
[[tables]]
number = "T{number}"
name = "Terrasse {number}"
capacity_min = 1
capacity_max = {seats}
minimum_spend = 500
type = "standard"
bookable = {bookable}
"""
SLOT = """
[[slots]]
name = "Slot {start}"
start = "{start}"
end = "{end}"
days_of_week = [0, 1, 2, 3, 4, 5, 6]
"""


def write_venue(file):
    tables = [
        TABLE.format(number=n, seats=1000, bookable="false" if n == 6 else "true")
        for n in range(1, 7)
    ]
    slots = [SLOT.format(start="19:30", end="22:00"), SLOT.format(start="22:00", end="01:00")]
    file.write_text(VENUE + "".join(tables + slots), "utf-8")


def venuebox(*arguments):
    return [sys.executable, "-m", "web.main", *arguments]


@pytest.fixture
def data(tmp_path):
    write_venue(tmp_path / "venue.toml")
    data = tmp_path / "data"
    run = venuebox("init", "--data", str(data), "--venue", str(tmp_path / "venue.toml"))
    subprocess.run(run, check=True, capture_output=True)
    return data


@pytest.fixture
def address(data):
    """Where a real box listens, with room for thousands of calls a minute."""
    environ = {
        **os.environ,
        "VENUEBOX_API_RATE_LIMIT_PER_MINUTE": "1000000",
        "VENUEBOX_API_UNAUTHENTICATED_PER_MINUTE": "1000000",
        "VENUEBOX_WEBHOOKS_ALLOW_NETWORKS": RECEIVER,
    }
    run = venuebox("serve", "--data", str(data), "--host", "127.0.0.1", "--port", "0")
    with subprocess.Popen(run, env=environ, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process.stdout.readline().split()[1]
        finally:
            process.terminate()
            try:
                assert process.wait(15) == 0
            finally:
                process.kill()


def fresh_key(data, environment):
    run = venuebox("key", "create", "--data", str(data), "--environment", environment,
                   "--name", "schemathesis", "--json")  # fmt: skip
    return json.loads(subprocess.run(run, check=True, capture_output=True).stdout)["key"]


def ask(base, key, path):
    headers = {"Authorization": f"Bearer {key}"}
    call = Request(base + path, headers=headers)  # noqa: S310 - the box's own address
    with urlopen(call, timeout=10) as answer:  # noqa: S310 - as above
        return json.load(answer)


def configuration(key):
    return f"""
seed = {SEED}
hooks = {json.dumps(str(HOOKS))}
continue-on-failure = true
warnings = false

[auth.openapi]
apiKey = {{ bearer = "{key}" }}

[checks]
# The check in {HOOKS.name} takes its place: dates, slots and capacities are refused with 400.
positive_data_acceptance = {{ enabled = false }}

[[operations]]
# Its path is also DELETE /v1/webhooks/{{id}} with an id that is no UUID: 404, not 405.
include-operation-id = "testWebhook"
checks.unsupported_method = {{ enabled = false }}
checks.allow_header_conformance = {{ enabled = false }}

[generation]
max-examples = {EXAMPLES}
database = "none"
"""


@pytest.mark.proves("S30")
@pytest.mark.parametrize("environment", ["live", "test"])
def test_no_answer_is_undocumented_and_none_is_a_server_error(data, address, environment, tmp_path):
    base = address + {"live": "", "test": "/test"}[environment]
    key = fresh_key(data, environment)
    tables = [table["id"] for table in ask(base, key, "/v1/venue")["tables"]]
    config = tmp_path / "schemathesis.toml"
    config.write_text(configuration(key), "utf-8")

    done = subprocess.run(
        [sys.executable, "-m", "schemathesis.cli", "--config-file", str(config), "--no-color",
         "run", f"{base}/openapi.json"],
        env={**os.environ, "PYTHONPATH": str(ROOT), "TABLES": json.dumps(tables)},
        capture_output=True, text=True, timeout=240, cwd=tmp_path, check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stdout + done.stderr
    granted = ask(base, key, "/v1/reservations?limit=1")["total"]
    assert granted > 20, "nearly everything was refused, so little was tried"
