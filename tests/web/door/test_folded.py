"""The browser's search compares text as the box does, by the same vectors."""

import json
import subprocess

from tests.web.door.test_vectors import FRONTEND, NODE, ROOT, RUN

VECTORS = json.loads((ROOT / "tests" / "vectors" / "folded.json").read_text("utf-8"))["vectors"]
PROGRAM = """
import { fold } from "./src/_fold";
import { fold as atTheDoor } from "./src/door/offline";

export const judge = (texts) => texts.map((text) => [fold(text), atTheDoor(text)]);
"""


def test_the_browser_folds_as_the_vectors_say():
    done = subprocess.run(
        [NODE, "--input-type=module", "-e", RUN, PROGRAM],
        cwd=FRONTEND,
        input=json.dumps([vector["text"] for vector in VECTORS]),
        capture_output=True,
        text=True,
        check=True,
    )

    told = json.loads(done.stdout)

    assert told == [[vector["folded"]] * 2 for vector in VECTORS]
