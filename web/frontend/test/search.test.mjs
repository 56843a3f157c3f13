import assert from "node:assert/strict";
import test from "node:test";
import vectors from "../../../tests/vectors/folded.json";
import { containsNumber } from "../src/shared/phone_numbers";
import { fold, matches } from "../src/shared/text_folding";

test("text is folded as the box folds it", () => {
  for (const { note, text, folded } of vectors.vectors) assert.equal(fold(text), folded, note);
});

test("a search finds what the box finds", () => {
  for (const { query, text, found } of vectors.searches) {
    assert.equal(matches(query, text), found, `${query} in ${text}`);
  }
});

test("a phone number is found however it is typed", () => {
  const known = "+212612345678 +212524000000";
  for (const typed of ["0612345678", "+212 (0)6 12", "00212 612", "345", "tel:+212612345678", "٠٦١٢"]) {
    assert.ok(containsNumber(known, typed), typed);
  }
  for (const typed of ["12", "06 a", "", "+", "0699"]) assert.ok(!containsNumber(known, typed), typed);
});
