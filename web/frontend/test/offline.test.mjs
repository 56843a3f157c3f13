import assert from "node:assert/strict";
import test from "node:test";
import vectors from "../../../tests/vectors/offline.json";
import { publicKey } from "../../../tests/vectors/guest_pass.json";
import { decideOffline } from "../src/door/offline";

const X = Buffer.from(publicKey, "hex").toString("base64url");

/** The verdict on `vector.text` by a phone without the box, whose list has one guest. */
async function decide(vector) {
  const tag = vector.venueTag ?? vectors.venueTag;
  const passes = [{ ...vectors.listed, ...vector.listed }];
  const snapshot = { venueTag: tag, ...vectors.snapshot, passes, ...vector.snapshot };
  const { timeZone } = vectors.snapshot;
  const me = {
    terminal: { role: "search" },
    venue: { tag, timeZone, eveningEndsAt: "06:00" },
    utcOffsetMinutes: 60,
    publicKeys: [{ kid: 1, publicKey: X }],
  };
  return decideOffline({ scanId: "one", code: vector.text }, {
    me, environment: "live", snapshot: vector.snapshot === null ? null : snapshot,
    presence: new Map(), now: Date.parse(vector.now ?? vectors.now),
  });
}

for (const { note, ...vector } of vectors.vectors) {
  test(`without the box, the app decides as the bridge does: ${note}`, async () => {
    const { result, colour } = await decide(vector);
    assert.deepEqual([result, colour], [vector.result, vector.colour]);
  });
}

test("a guest is found offline by a family name that the list does not show", async () => {
  const listed = { searchedName: "Sara Alami" };
  assert.equal((await decide({ text: "alami", listed })).result, "ambiguous");
  assert.equal((await decide({ text: "Bennis", listed })).result, "needs_box");
  assert.equal((await decide({ text: "b", listed })).result, "unknown_code");
});
