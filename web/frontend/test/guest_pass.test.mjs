import assert from "node:assert/strict";
import test from "node:test";
import vectors from "../../../tests/vectors/guest_pass.json";
import { classify, decodePasses } from "../src/door/guest_pass";
import { verify, verifyByLibrary } from "../src/door/signature";

const KEY = Uint8Array.from(Buffer.from(vectors.publicKey, "hex"));
const CONTEXT = new TextEncoder().encode("svc-guest-pass-v1");

/** The pass in `text` whose signature `check` accepts, or null. */
async function passIn(text, check) {
  for (const { signed, signature, ...pass } of decodePasses(text)) {
    if (await check(KEY, new Uint8Array([...CONTEXT, ...signed]), signature)) return pass;
  }
  return null;
}

for (const [by, check] of Object.entries({ browser: verify, library: verifyByLibrary })) {
  test(`the ${by} accepts the passes that are valid and no other`, async () => {
    for (const { note, text, read = text, valid, pass } of vectors.vectors) {
      assert.deepEqual(await passIn(read, check), valid ? pass : null, note);
    }
  });

  test(`the ${by} accepts no pass with a changed character`, async () => {
    const [{ text }] = vectors.vectors;
    for (const [place, sign] of [...text].entries()) {
      const other = sign === "A" ? "B" : "A";
      const changed = text.slice(0, place) + other + text.slice(place + 1);
      assert.equal(await passIn(changed, check), null, `character ${place}`);
    }
  });
}

test("passes, links and codes are cut out of what was read as the box does", () => {
  for (const { note, read, kind, value = null } of vectors.readings) {
    const code = kind === "code" ? value : null;
    assert.deepEqual(classify(read), { kind: kind === "other" ? "text" : kind, code }, note);
  }
});
