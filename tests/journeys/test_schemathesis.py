"""Schemathesis against a real box, with its own OpenAPI document (interface, sections 2 to 8)."""

import json
import os
import subprocess
import sys
from pathlib import Path
from urllib.request import Request, urlopen

from tests.journeys.box_process import BoxProcess, found_box
from tests.soak.scale import FULL

HOOKS = Path(__file__).with_name("schemathesis_hooks.py")
ROOT = Path(__file__).parents[2]
SEED = 20261121
EXAMPLES = 100 if FULL else 25  # for each operation and phase
RECEIVER = "127.0.0.1:9009"  # the receiver of schemathesis_hooks.py


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
# DELETE cancels a reservation, which can still be read.
use_after_free = {{ enabled = false }}

[generation]
max-examples = {EXAMPLES}
database = "none"
"""


def test_every_response_is_documented_and_none_is_a_server_error(tmp_path):
    founded = found_box(tmp_path, tables=6)
    key = founded.keys["live"]
    config = tmp_path / "schemathesis.toml"
    config.write_text(configuration(key), "utf-8")
    settings = {"VENUEBOX_WEBHOOKS_ALLOW_NETWORKS": RECEIVER}

    with BoxProcess(founded.data, log=tmp_path / "box.log", settings=settings) as box:
        base = box.address
        tables = [table["id"] for table in ask(base, key, "/v1/venue")["tables"]]
        done = subprocess.run(
            [sys.executable, "-m", "schemathesis.cli", "--config-file", str(config), "--no-color",
             "run", f"{base}/openapi.json"],
            env={**os.environ, "PYTHONPATH": str(ROOT), "TABLES": json.dumps(tables)},
            capture_output=True, text=True, timeout=400, cwd=tmp_path, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        granted = ask(base, key, "/v1/reservations?limit=1")["total"]
        box.stop()

    assert granted > 10, "nearly everything was refused, so little was tried"
