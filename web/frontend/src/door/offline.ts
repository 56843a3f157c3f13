/**
 * The verdict while the box is out of reach, in the order of docs/decisions/door.md. Green only
 * for who is listed, not yet in, and while the list is less than twelve hours old.
 */
import { fold } from "../_fold";
import { isLookalike, parseAccessCode } from "./access_code";
import { decodePasses, type ReadPass, resemblesPass, VERSIONS } from "./pass";
import { passIsSigned } from "./signature";
import type { Colour, Guest, Me, Scan, Snapshot, Verdict } from "./types";
import { isTooEarly, tonight } from "./venue_time";

export { fold };

const OLDEST_MS = 12 * 3600_000;
const AHEAD_MS = 10 * 60_000; // a list from further in the future than that was made by another clock
const DAMAGED_BYTES = 2; // a tag that differs in no more is ours with a fault in it
export const UNLISTED = "pass:"; // before the id of a pass, where nobody knows the reservation's
const LINK = /\/access\/[\w-]+/;
// As the box knows a name (appliance/door/scan.py).
const NAME = /^[\p{L}\p{M}]{2,}(?:[\s'’.-]+[\p{L}\p{M}]+)*$/u;
const NAME_MAX = 80;

/** What this phone knows: `arrived` is the count by reservation since the list was made. */
export interface Known {
  me: Me;
  environment: string;
  snapshot: Snapshot | null;
  arrived: ReadonlyMap<string, number>;
  now: number;
}

/** A guest of the list, and the generation of the pass that is good. */
export interface Listed extends Guest {
  passId: string;
  generation: number;
}

const COLOURS: Readonly<Record<string, Colour>> = {
  checked_in: "green", party_added: "green",
  already_checked_in: "amber", party_full: "amber", not_yet: "amber", too_late: "amber",
  not_confirmed: "amber", payment_due: "amber", ambiguous: "amber", unlisted: "amber",
  old_list: "amber", needs_box: "amber",
  cancelled: "red", declined: "red", revoked: "red", wrong_venue: "red", test_code: "red",
  bad_signature: "red", unknown_code: "red",
};
const OVERRIDABLE = new Set([
  "already_checked_in", "party_full", "not_yet", "too_late", "not_confirmed", "payment_due",
  "cancelled", "declined", "revoked", "unlisted", "old_list",
]);
const UNSETTLED: Readonly<Record<string, string>> = {
  requested: "not_confirmed", pending: "payment_due", partial: "payment_due",
};
const HOLDS_NOTHING = new Set(["cancelled", "declined"]);

/** Everybody on the list, with who came in since. */
export function listGuests(known: Known): Listed[] {
  const { snapshot, arrived } = known;
  return (snapshot?.passes ?? []).map((pass) => ({
    id: pass.reservationId,
    accessCode: pass.accessCode,
    customerFirstName: pass.firstName,
    table: { name: pass.table, number: pass.tableNumber },
    date: snapshot?.evening ?? "",
    slot: pass.slot,
    guests: pass.guests,
    arrived: arrived.get(pass.reservationId) ?? pass.arrived,
    notes: null,
    status: pass.state,
    passId: pass.passId,
    generation: pass.generation,
  }));
}

/** The verdict on `scan`, which changes nothing: the caller counts who was admitted. */
export async function judge(scan: Scan, known: Known): Promise<Verdict> {
  if (scan.reservationId !== undefined) {
    const guest = listGuests(known).find((one) => one.id === scan.reservationId);
    if (!guest) return say(scan, known, "needs_box", null);
    return decide(scan, known, guest, judgeGuest(scan, known, guest, null));
  }
  const code = scan.code ?? "";
  return isTyped(code) ? judgeText(scan, known, code) : judgePass(scan, known, code);
}

/** Whether this is a code, a name or a link, and no pass. */
export function isTyped(text: string): boolean {
  return parseAccessCode(text) !== null || !resemblesPass(text);
}

/** Whether a code that was read is neither a pass, nor a guest's link, nor an access code. */
export function isForeign(text: string): boolean {
  return !resemblesPass(text) && !LINK.test(text) && parseAccessCode(text) === null;
}

async function judgePass(scan: Scan, known: Known, code: string): Promise<Verdict> {
  let likeliest: ReadPass | null = null;
  for (const read of decodePasses(code)) {
    const { kid, signed, signature } = read;
    if (await passIsSigned(known.me.publicKeys, kid, signed, signature)) {
      const foreign = foreignTo(known, read);
      if (foreign) return say(scan, known, foreign, null);
      const guest = listGuests(known).find((one) => one.passId === read.passId);
      if (guest) return decide(scan, known, guest, judgeGuest(scan, known, guest, read));
      return judgeUnlisted(scan, known, read);
    }
    likeliest ??= read;
  }
  const foreign = likeliest && foreignTo(known, likeliest);
  return say(scan, known, foreign ?? "bad_signature", null);
}

/**
 * A typed code or name; a link only the box can open. A name always asks which one: the list has
 * first names alone, and who is not found by one may have another, or be new on tonight's list.
 */
function judgeText(scan: Scan, known: Known, text: string): Verdict {
  if (LINK.test(text)) return say(scan, known, "needs_box", null);
  const guests = listGuests(known);
  const code = parseAccessCode(text);
  const coded = code === null ? [] : findByCode(guests, code);
  const [only] = coded;
  if (only && coded.length === 1) {
    return decide(scan, known, only, judgeGuest(scan, known, only, null));
  }
  const byName = known.me.terminal.role !== "scan" && isName(text);
  const found = coded.length > 0 || !byName ? coded : findByName(guests, text);
  if (found.length > 0) return { ...say(scan, known, "ambiguous", null), candidates: found };
  const open = !known.snapshot || byName || (code !== null && !isTonights(known));
  return say(scan, known, open ? "needs_box" : "unknown_code", null);
}

function findByCode(guests: readonly Listed[], code: string): Listed[] {
  const exact = guests.filter((guest) => guest.accessCode === code);
  if (exact.length > 0) return exact;
  return guests.filter((guest) => isLookalike(code, guest.accessCode ?? ""));
}

function isName(text: string): boolean {
  return text.length <= NAME_MAX && NAME.test(text.trim());
}

function findByName(guests: readonly Listed[], text: string): Listed[] {
  const words = fold(text).split(/\s+/).filter(Boolean);
  return guests.filter((guest) => {
    const name = fold(guest.customerFirstName ?? "").split(/\s+/);
    const holds = !HOLDS_NOTHING.has(guest.status);
    return holds && words.every((w) => name.some((n) => n.startsWith(w)));
  });
}

function decide(scan: Scan, known: Known, guest: Guest, found: string): Verdict {
  const missing = Math.max(0, guest.guests - guest.arrived);
  const overrode = scan.override && OVERRIDABLE.has(found) ? found : undefined;
  if (COLOURS[found] !== "green" && overrode === undefined) return say(scan, known, found, guest);
  const admitted = scan.arrivals ?? Math.max(missing, overrode === undefined ? missing : 1);
  const result = guest.arrived > 0 ? "party_added" : "checked_in";
  const seen = { ...guest, arrived: guest.arrived + admitted };
  const verdict = { ...say(scan, known, result, seen), admitted };
  return overrode === undefined ? verdict : { ...verdict, overrode };
}

function judgeGuest(scan: Scan, known: Known, guest: Listed, read: ReadPass | null): string {
  if (read && read.generation !== guest.generation) return "revoked";
  if (HOLDS_NOTHING.has(guest.status)) return guest.status;
  const evening = tonight(known.now, known.me);
  if (guest.date !== evening) return guest.date > evening ? "not_yet" : "too_late";
  if (isTooEarly(known.now, guest, known.me, known.snapshot?.earlyMinutes ?? 120)) {
    return "not_yet";
  }
  const unsettled = UNSETTLED[guest.status];
  if (unsettled) return unsettled;
  const missing = guest.guests - guest.arrived;
  if (missing <= 0) return "already_checked_in";
  if ((scan.arrivals ?? 0) > missing) return "party_full";
  if (!isFresh(known)) return "old_list";
  return guest.arrived > 0 ? "party_added" : "checked_in";
}

/**
 * A pass that is genuine and stands on no list: its date still tells whether it is tonight's, and
 * whoever lets its party in with a reason finds it in when it comes again.
 */
function judgeUnlisted(scan: Scan, known: Known, read: ReadPass): Verdict {
  const evening = tonight(known.now, known.me);
  if (read.evening !== evening) {
    return say(scan, known, read.evening > evening ? "not_yet" : "too_late", null);
  }
  const id = `${UNLISTED}${read.passId}`;
  const guest: Guest = {
    id, accessCode: null, customerFirstName: null, table: { name: "" }, date: read.evening,
    slot: read.slot, guests: read.guests, arrived: known.arrived.get(id) ?? 0, notes: null,
    status: "confirmed",
  };
  const found = guest.arrived < guest.guests ? "unlisted" : "already_checked_in";
  return decide(scan, known, guest, found);
}

/** Whether the list can say of a code that nobody has it. */
function isTonights(known: Known): boolean {
  return known.snapshot?.evening === tonight(known.now, known.me) && isFresh(known);
}

function isFresh({ snapshot, now }: Known): boolean {
  if (!snapshot) return false;
  const age = now - Date.parse(snapshot.madeAt);
  return age < OLDEST_MS && age > -AHEAD_MS;
}

function foreignTo(known: Known, read: ReadPass): string | null {
  if (read.version !== VERSIONS[known.environment]) return "test_code";
  const pairs = read.venueTag.match(/../g) ?? [];
  const ours = known.me.venue.tag.match(/../g) ?? [];
  return pairs.filter((byte, n) => byte !== ours[n]).length > DAMAGED_BYTES ? "wrong_venue" : null;
}

function say(scan: Scan, known: Known, result: string, guest: Guest | null): Verdict {
  const may = known.me.terminal.role === "override";
  return {
    scanId: scan.scanId,
    result,
    colour: COLOURS[result] ?? "grey",
    say: null,
    overridable: may && guest !== null && OVERRIDABLE.has(result),
    admitted: 0,
    reservation: guest,
    firstCheckIn: null,
    offline: true,
  };
}
