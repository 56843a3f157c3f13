"""The door app's own reading of passes, by the vectors that the box is held to."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.appliance.model.test_keyboard_layouts import ARABIC, AZERTY, typed

ROOT = Path(__file__).parents[3]
FRONTEND = ROOT / "web" / "frontend"
VECTORS = json.loads((ROOT / "tests" / "vectors" / "guest_pass.json").read_text())
NODE = ROOT / ".venv" / "bin" / "node"
PROGRAM = """
import { decodePasses } from "./src/door/pass";
import { verify, verifyByLibrary } from "./src/door/signature";

const bytes = (hex) => Uint8Array.from(hex.match(/../g), (two) => parseInt(two, 16));
const context = new TextEncoder().encode("svc-guest-pass-v1");

export async function judge({ publicKey, texts }) {
  const key = bytes(publicKey);
  const answers = [];
  for (const text of texts) {
    const found = { browser: null, library: null };
    for (const read of decodePasses(text)) {
      const message = new Uint8Array([...context, ...read.signed]);
      const { signed, signature, ...pass } = read;
      if (await verify(key, message, signature)) found.browser ??= pass;
      if (await verifyByLibrary(key, message, signature)) found.library ??= pass;
    }
    answers.push(found);
  }
  return answers;
}
"""
RUN = """
import { build } from "esbuild";
const { outputFiles } = await build({
  stdin: { contents: process.argv[1], resolveDir: process.cwd(), loader: "ts" },
  bundle: true, write: false, format: "esm", platform: "neutral",
});
const program = Buffer.from(outputFiles[0].contents).toString("base64");
const { judge } = await import(`data:text/javascript;base64,${program}`);
let input = "";
for await (const piece of process.stdin) input += piece;
console.log(JSON.stringify(await judge(JSON.parse(input))));
"""


def judge(texts):
    done = subprocess.run(
        [NODE, "--input-type=module", "-e", RUN, PROGRAM],
        cwd=FRONTEND,
        input=json.dumps({"publicKey": VECTORS["publicKey"], "texts": texts}),
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


@pytest.mark.parametrize("by", ["browser", "library"])
def test_the_app_accepts_the_vectors_that_are_valid_and_no_other(by):
    vectors = VECTORS["vectors"]

    answers = judge([vector.get("read", vector["text"]) for vector in vectors])

    for vector, answer in zip(vectors, answers, strict=True):
        assert answer[by] == (vector.get("pass") if vector["valid"] else None), vector["note"]


def test_no_changed_character_is_accepted():
    text = VECTORS["vectors"][0]["text"]
    changed = [
        text[:n] + ("A" if sign != "A" else "B") + text[n + 1 :] for n, sign in enumerate(text)
    ]

    assert judge(changed) == [{"browser": None, "library": None}] * len(changed)


@pytest.mark.parametrize("keys", [AZERTY, ARABIC | {"B": "\ufefb"}], ids=["azerty", "arabic"])
def test_every_layout_is_turned_back(keys):
    vector = VECTORS["vectors"][0]

    (answer,) = judge([typed(vector["text"], keys)])

    assert answer["browser"] == vector["pass"]
