"""The door app reads typed access codes as the box does."""

import json
import subprocess

from appliance.model.access_code import lookalikes, parse_access_code
from tests.web.door.test_vectors import FRONTEND, NODE, RUN

TYPED = [
    "SVC-7K2M", "svc 7k2m", "7k2m", " 7-k.2_m ", "SVC–7K2M", "٧K٢M", "۷K۲M", "svc ٧k٢m",
    "7K2", "7K2MX", "SVC", "svcsvc7k2m", "Zoë1", "", "٧٢٧٢", "HÉLÈ",
]  # fmt: skip
STORED = ["SVC-7K2M", "SVC-JKZM", "SVC-8B8B", "SVC-B8B8", "SVC-QDQD", "SVC-UVUV"]
PROGRAM = """
import { isLookalike, parseAccessCode } from "./src/door/access_code";

export const judge = ({ typed, stored }) => ({
  parsed: typed.map(parseAccessCode),
  alike: stored.map((one) => stored.filter((other) => one !== other && isLookalike(one, other))),
});
"""


def test_the_browser_reads_codes_as_the_box_does():
    done = subprocess.run(
        [NODE, "--input-type=module", "-e", RUN, PROGRAM],
        cwd=FRONTEND,
        input=json.dumps({"typed": TYPED, "stored": STORED}),
        capture_output=True,
        text=True,
        check=True,
    )

    told = json.loads(done.stdout)

    assert told["parsed"] == [parse_access_code(text) for text in TYPED]
    assert told["alike"] == [
        [other for other in STORED if other in lookalikes(one)] for one in STORED
    ]
