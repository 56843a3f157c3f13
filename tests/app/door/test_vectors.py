"""The door app reads passes, typed codes and searches by the same test vectors as the box."""

import json
import subprocess
import unicodedata
from pathlib import Path

import pytest

from appliance.core.phone_numbers import contains
from appliance.core.text import fold
from appliance.door.guest_pass import lookalikes, parse_access_code
from tests.unit.door.test_keyboard_layouts import HOSTS, typed

pytestmark = pytest.mark.process

ROOT = Path(__file__).parents[3]
FRONTEND = ROOT / "web" / "frontend"
VECTORS = json.loads((ROOT / "tests" / "vectors" / "guest_pass.json").read_text())
NODE = ROOT / ".venv" / "bin" / "node"
PROGRAM = """
import { decodePasses } from "./src/door/guest_pass";
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


def run(program, given):
    done = subprocess.run(
        [NODE, "--input-type=module", "-e", RUN, program],
        cwd=FRONTEND, input=json.dumps(given), capture_output=True, text=True, check=True,
    )  # fmt: skip
    return json.loads(done.stdout)


def judge(texts):
    return run(PROGRAM, {"publicKey": VECTORS["publicKey"], "texts": texts})


def test_text_typed_with_every_keyboard_layout_is_converted_back():
    vector = VECTORS["vectors"][0]
    answers = judge([typed(vector["text"], keys) for keys in HOSTS.values()])
    assert [answer["browser"] for answer in answers] == [vector["pass"]] * len(HOSTS)


TYPED = [
    "SVC-7K2M", "svc 7k2m", "7k2m", " 7-k.2_m ", "SVC–7K2M", "٧K٢M", "۷K۲M", "svc ٧k٢m",
    "7K2", "7K2MX", "SVC", "svcsvc7k2m", "Zoë1", "", "٧٢٧٢", "HÉLÈ",
]  # fmt: skip
STORED = ["SVC-7K2M", "SVC-JKZM", "SVC-8B8B", "SVC-B8B8", "SVC-QDQD", "SVC-UVUV"]
CODES = """
import { isLookalike, parseAccessCode } from "./src/door/guest_pass";

export const judge = ({ typed, stored }) => ({
  parsed: typed.map(parseAccessCode),
  alike: stored.map((one) => stored.filter((other) => one !== other && isLookalike(one, other))),
});
"""


def test_the_browser_parses_access_codes_like_the_box():
    told = run(CODES, {"typed": TYPED, "stored": STORED})
    assert told["parsed"] == [parse_access_code(text) for text in TYPED]
    assert told["alike"] == [
        [other for other in STORED if other in lookalikes(one)] for one in STORED
    ]


FOLDED = json.loads((ROOT / "tests" / "vectors" / "folded.json").read_text("utf-8"))
FOLDING = """
import { containsNumber } from "./src/shared/phone_numbers";
import { fold, matches } from "./src/shared/text_folding";

export const judge = ({ texts, searches, numbers }) => ({
  folded: texts.map(fold),
  found: searches.map(({ query, text }) => matches(query, text)),
  numbers: numbers.map(([known, query]) => containsNumber(known, query)),
});
"""
# Latin, Greek, Cyrillic, Hebrew and Arabic letters, punctuation, presentation forms, full width
BLOCKS = [(0x20, 0x700), (0x1E00, 0x2100), (0xFB00, 0xFEFF), (0xFF01, 0xFFEF)]
SIGNS = [chr(n) for block in BLOCKS for n in range(*block) if unicodedata.name(chr(n), "")]
NUMBERS = [
    (known, query)
    for known in ("+212612345678 +212524000000 06123456780524000000", "0123456")
    for query in ("0612345678", "+212 (0)6 12", "00212 612", "+2120612345678", "2120612345678",
                  "345", "12", "tel:+212612345678", "٠٦١٢", "0000", "06 a", "", "+", "7 89",
                  "(0)6 12 34", "0123")
]  # fmt: skip


def test_the_browser_folds_and_searches_text_like_the_box():
    vectors, searches = FOLDED["vectors"], FOLDED["searches"]
    texts = [vector["text"] for vector in vectors] + SIGNS

    told = run(FOLDING, {"texts": texts, "searches": searches, "numbers": NUMBERS})

    assert told["folded"] == [vector["folded"] for vector in vectors] + [
        fold(sign) for sign in SIGNS
    ]
    assert told["found"] == [search["found"] for search in searches]
    assert told["numbers"] == [contains(None, known.split(), query) for known, query in NUMBERS]
