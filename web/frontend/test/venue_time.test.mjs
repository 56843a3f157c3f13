import assert from "node:assert/strict";
import test from "node:test";
import { clockOf, isTooEarly, minutesOfEvening, startDate, tonight } from "../src/door/venue_time";

const CASABLANCA = { utcOffsetMinutes: 60, venue: { eveningEndsAt: "06:00" } };
const at = (moment) => Date.parse(`2026-11-${moment}Z`);

test("the evening keeps its date until it ends the next morning", () => {
  assert.equal(tonight(at("21T19:00"), CASABLANCA), "2026-11-21");
  assert.equal(tonight(at("22T04:59"), CASABLANCA), "2026-11-21");
  assert.equal(tonight(at("22T05:00"), CASABLANCA), "2026-11-22");
});

test("a slot after midnight belongs to the evening before and starts on the next day", () => {
  assert.equal(minutesOfEvening("19:30", CASABLANCA), 19 * 60 + 30);
  assert.equal(minutesOfEvening("01:00", CASABLANCA), 25 * 60);
  assert.equal(startDate({ date: "2026-11-21", slot: "01:00" }, CASABLANCA), "2026-11-22");
  assert.equal(startDate({ date: "2026-11-21", slot: null }, CASABLANCA), "2026-11-21");
});

test("a party is too early for a slot that starts later than the rule allows, never for an evening", () => {
  const early = (slot, moment) => isTooEarly(at(moment), { slot }, CASABLANCA, 30);
  assert.equal(early("22:00", "21T20:29"), true);
  assert.equal(early("22:00", "21T20:30"), false);
  assert.equal(early("01:00", "22T00:00"), false);
  assert.equal(early(null, "21T10:00"), false);
});

test("times are shown in the venue's zone, whatever the phone's is", () => {
  assert.equal(clockOf("2026-11-21T23:05:00Z", CASABLANCA), "00:05");
});
