/**
 * Decide scans offline. The order of the checks is given in docs/decisions/door.md. Without an
 * override, a verdict is green only if the party is in the snapshot and not completely checked in,
 * and the snapshot is less than 12 hours old.
 */
import { fold, words } from "../shared/text_folding";
import {
  classify, decodePasses, isLookalike, type Read, type ReadPass, resemblesPass, VERSIONS,
} from "./guest_pass";
import { passIsSigned } from "./signature";
import type { Colour, Guest, Me, Presence, Queued, Scan, Snapshot, Verdict } from "./types";
import { isTooEarly, tonight } from "./venue_time";

const OLDEST_MS = 12 * 3600_000;
const AHEAD_MS = 10 * 60_000; // maximum time that a snapshot's `madeAt` may be in the future
// If at most this many bytes of a pass's venue tag differ from our venue's tag, the pass counts as
// damaged. If more differ, it is another venue's pass.
const DAMAGED_BYTES = 2;
// The id of a guest who is not in the snapshot consists of this prefix and the pass id.
export const UNLISTED = "pass:";
// This pattern, of folded text, is the same as in appliance/reservations/search.py.
const NAME = /^\p{L}{2,}(?:[\s.-]+\p{L}+)*$/u;
const NAME_MAX = 80;

/** The data for offline decisions. `presence` maps reservation ids to counts after the snapshot. */
export interface OfflineData {
  me: Me;
  environment: string;
  snapshot: Snapshot | null;
  presence: ReadonlyMap<string, Presence>;
  now: number;
}

/** A guest in the snapshot, with the id and generation of the valid pass. */
export interface Listed extends Guest {
  passId: string;
  generation: number;
  replacedCodes: readonly string[];
}

const COLOURS: Readonly<Record<string, Colour>> = {
  checked_in: "green", party_added: "green", came_back: "green", walk_in: "green", went_out: "green",
  already_checked_in: "amber", party_full: "amber", not_yet: "amber", too_late: "amber",
  not_confirmed: "amber", payment_due: "amber", ambiguous: "amber", not_inside: "amber",
  unlisted: "amber", old_list: "amber", needs_box: "amber", revoked: "amber",
  cancelled: "red", declined: "red", wrong_venue: "red", test_code: "red", bad_signature: "red",
  unknown_code: "red",
};
const OVERRIDABLE = new Set([
  "already_checked_in", "party_full", "not_yet", "too_late", "not_confirmed", "payment_due",
  "cancelled", "declined", "revoked", "unlisted", "old_list",
]);
const UNSETTLED: Readonly<Record<string, string>> = {
  requested: "not_confirmed", pending: "payment_due", partial: "payment_due",
};
const HOLDS_NOTHING = new Set(["cancelled", "declined"]);

/** Return the guests in the snapshot, with current arrival counts. */
export function listGuests(data: OfflineData): Listed[] {
  const { snapshot, presence } = data;
  return (snapshot?.passes ?? []).map((pass) => ({
    id: pass.reservationId,
    accessCode: pass.accessCode,
    customerFirstName: pass.firstName,
    searchedName: pass.searchedName ?? null,
    phoneEnd: pass.phoneEnd ?? null,
    table: { name: pass.table, number: pass.tableNumber },
    date: snapshot?.evening ?? "",
    slot: pass.slot,
    guests: pass.guests,
    arrived: pass.arrived,
    out: pass.out ?? 0,
    wentOutAt: pass.wentOutAt ?? null,
    ...presence.get(pass.reservationId),
    lateFrom: pass.lateFrom ?? null,
    notes: null,
    status: pass.state,
    passId: pass.passId,
    generation: pass.generation,
    replacedCodes: pass.replacedCodes ?? [],
  }));
}

/** Decide a scan without storing anything. The caller must store the admission. */
export async function decideOffline(scan: Scan, data: OfflineData): Promise<Verdict> {
  if (scan.walkIn) return countWithoutTable(scan, data);
  if (scan.reservationId !== undefined) {
    const guest = listGuests(data).find((guest) => guest.id === scan.reservationId);
    if (!guest) return makeVerdict(scan, data, "needs_box", null);
    return guestVerdict(scan, data, guest, resultFor(scan, data, guest, null));
  }
  const text = scan.code ?? "";
  const read = classify(text);
  return read.kind === "pass" ? decidePass(scan, data, text) : decideText(scan, data, text, read);
}

/** Whether the text is neither a pass, whole or not, nor a guest link, nor an access code. */
export function isForeign(text: string): boolean {
  return !resemblesPass(text) && classify(text).kind === "text";
}

async function decidePass(scan: Scan, data: OfflineData, code: string): Promise<Verdict> {
  let likeliest: ReadPass | null = null;
  for (const read of decodePasses(code)) {
    const { kid, signed, signature } = read;
    if (await passIsSigned(data.me.publicKeys, kid, signed, signature)) {
      const foreign = foreignResult(data, read);
      if (foreign) return makeVerdict(scan, data, foreign, null);
      const guest = listGuests(data).find((guest) => guest.passId === read.passId);
      if (guest) return guestVerdict(scan, data, guest, resultFor(scan, data, guest, read));
      return decideUnlisted(scan, data, read);
    }
    likeliest ??= read;
  }
  const foreign = likeliest && foreignResult(data, likeliest);
  return makeVerdict(scan, data, foreign ?? "bad_signature", null);
}

/**
 * Decide a typed code, name or link. A link gives `needs_box`, because only the box can resolve it.
 * A name that matches gives `ambiguous`, even with a single match, because others may have the same
 * name. A name without a match gives `needs_box`, because the box may have newer reservations. A
 * terminal with the role "scan" cannot search by name.
 */
function decideText(scan: Scan, data: OfflineData, text: string, read: Read): Verdict {
  if (read.kind === "link") return makeVerdict(scan, data, "needs_box", null);
  const guests = listGuests(data);
  const { code } = read;
  const had = guests.find(({ replacedCodes }) => code !== null && replacedCodes.includes(code));
  if (had && !guests.some(({ accessCode }) => accessCode === code)) {
    return guestVerdict(scan, data, had, "revoked");
  }
  const byCode = code === null ? [] : findByCode(guests, code);
  const [only] = byCode;
  if (only && byCode.length === 1) {
    return guestVerdict(scan, data, only, resultFor(scan, data, only, null));
  }
  const byName = data.me.terminal.role !== "scan" && isName(text);
  const found = byCode.length > 0 || !byName ? byCode : findByName(guests, text);
  if (found.length > 0) {
    return { ...makeVerdict(scan, data, "ambiguous", null), candidates: found };
  }
  const needsBox = !data.snapshot || byName || (code !== null && !isTonights(data));
  return makeVerdict(scan, data, needsBox ? "needs_box" : "unknown_code", null);
}

function findByCode(guests: readonly Listed[], code: string): Listed[] {
  const exact = guests.filter((guest) => guest.accessCode === code);
  if (exact.length > 0) return exact;
  return guests.filter((guest) => isLookalike(code, guest.accessCode ?? ""));
}

function isName(text: string): boolean {
  const folded = fold(text).replace(/'/g, "").trim();
  return folded.length <= NAME_MAX && NAME.test(folded);
}

function findByName(guests: readonly Listed[], text: string): Listed[] {
  const wanted = words(text);
  return guests.filter((guest) => {
    const name = words(guest.searchedName ?? guest.customerFirstName ?? "");
    const holds = !HOLDS_NOTHING.has(guest.status);
    return holds && wanted.every((w) => name.some((n) => n.startsWith(w)));
  });
}

/** How many of the party are inside. */
export function insideOf(guest: Guest): number {
  return Math.max(0, guest.arrived - (guest.out ?? 0));
}

/** How many of the party are out and may come back: nobody, once its table was freed. */
export function awaitedBack(guest: Guest): number {
  return guest.status === "completed" ? 0 : Math.min(guest.out ?? 0, guest.arrived);
}

function countWithoutTable(scan: Scan, data: OfflineData): Verdict {
  const people = scan.arrivals ?? 1;
  if (scan.leaving) {
    return { ...makeVerdict(scan, data, "went_out", null), moved: -people };
  }
  return { ...makeVerdict(scan, data, "walk_in", null), admitted: people };
}

function exitVerdict(scan: Scan, data: OfflineData, guest: Guest): Verdict {
  const inside = insideOf(guest);
  const people = scan.arrivals ?? inside;
  if (people < 1 || people > inside) return makeVerdict(scan, data, "not_inside", guest);
  const wentOutAt = new Date(data.now).toISOString();
  const seen = { ...guest, out: (guest.out ?? 0) + people, wentOutAt };
  return { ...makeVerdict(scan, data, "went_out", seen), moved: -people };
}

function guestVerdict(scan: Scan, data: OfflineData, guest: Guest, found: string): Verdict {
  if (scan.leaving) return exitVerdict(scan, data, guest);
  const missing = Math.max(0, guest.guests - guest.arrived);
  const overrode = scan.override && OVERRIDABLE.has(found) ? found : undefined;
  if (COLOURS[found] !== "green" && overrode === undefined) {
    return makeVerdict(scan, data, found, guest);
  }
  const all = overrode === undefined ? awaitedBack(guest) || missing : Math.max(missing, 1);
  const entered = scan.arrivals ?? all;
  const out = guest.out ?? 0;
  const moved = Math.min(entered, out, guest.arrived); // those who are out come back first
  const admitted = entered - moved;
  const first = guest.arrived > 0 ? "party_added" : "checked_in";
  const seen = { ...guest, arrived: guest.arrived + admitted, out: out - moved };
  const result = admitted > 0 ? first : "came_back";
  const verdict = { ...makeVerdict(scan, data, result, seen), admitted, moved };
  return overrode === undefined ? verdict : { ...verdict, overrode };
}

function resultFor(scan: Scan, data: OfflineData, guest: Listed, read: ReadPass | null): string {
  if (read && read.generation !== guest.generation) return "revoked";
  if (HOLDS_NOTHING.has(guest.status)) return guest.status;
  const evening = tonight(data.now, data.me);
  if (guest.date !== evening) return guest.date > evening ? "not_yet" : "too_late";
  if (isTooEarly(data.now, guest, data.me, data.snapshot?.earlyMinutes ?? 120)) {
    return "not_yet";
  }
  const unsettled = UNSETTLED[guest.status];
  if (unsettled) return unsettled;
  const missing = guest.status === "completed" ? 0 : Math.max(0, guest.guests - guest.arrived);
  const out = awaitedBack(guest);
  if (missing + out === 0) return "already_checked_in";
  if ((scan.arrivals ?? 0) > missing + out) return "party_full";
  if (!isFresh(data)) return "old_list";
  if (out > 0 && (scan.arrivals ?? 0) <= out) return "came_back";
  return guest.arrived > 0 ? "party_added" : "checked_in";
}

/**
 * Decide a genuine pass that is not in the snapshot, from the evening and the number of guests that
 * the pass contains. If staff override the verdict, the arrivals are stored under an id made from
 * the pass id.
 */
function decideUnlisted(scan: Scan, data: OfflineData, read: ReadPass): Verdict {
  const evening = tonight(data.now, data.me);
  if (read.evening !== evening) {
    return makeVerdict(scan, data, read.evening > evening ? "not_yet" : "too_late", null);
  }
  const id = `${UNLISTED}${read.passId}`;
  const guest: Guest = {
    id, accessCode: null, customerFirstName: null, table: { name: "" }, date: read.evening,
    slot: read.slot, guests: read.guests, arrived: 0, notes: null, status: "confirmed",
    ...data.presence.get(id),
  };
  const found = guest.arrived < guest.guests ? "unlisted" : "already_checked_in";
  return guestVerdict(scan, data, guest, found);
}

/** Whether the snapshot is tonight's and recent. Any other snapshot may lack a valid code. */
function isTonights(data: OfflineData): boolean {
  return data.snapshot?.evening === tonight(data.now, data.me) && isFresh(data);
}

function isFresh({ snapshot, now }: OfflineData): boolean {
  if (!snapshot) return false;
  const age = now - Date.parse(snapshot.madeAt);
  return age < OLDEST_MS && age > -AHEAD_MS;
}

function foreignResult(data: OfflineData, read: ReadPass): string | null {
  if (read.version !== VERSIONS[data.environment]) return "test_code";
  const pairs = read.venueTag.match(/../g) ?? [];
  const ours = data.me.venue.tag.match(/../g) ?? [];
  return pairs.filter((byte, n) => byte !== ours[n]).length > DAMAGED_BYTES ? "wrong_venue" : null;
}

function makeVerdict(scan: Scan, data: OfflineData, result: string, guest: Guest | null): Verdict {
  const mayOverride = data.me.terminal.role === "override";
  return {
    scanId: scan.scanId,
    result,
    colour: COLOURS[result] ?? "grey",
    say: null,
    overridable: mayOverride && guest !== null && OVERRIDABLE.has(result),
    admitted: 0,
    moved: 0,
    reservation: guest,
    firstCheckIn: null,
    offline: true,
  };
}

/**
 * Return the queue entry for an offline decision. If a typed code admitted guests, the entry also
 * contains the reservation's id, because the box may match the code to another reservation. A pass
 * is sent without this id, so that the box can check whether the pass was replaced. After an
 * override, an exit or a re-entry, the entry contains the number of guests, because the box cannot
 * infer it.
 */
export function queueEntry(scan: Scan, verdict: Verdict, reached: boolean): Queued {
  const { admitted, moved } = verdict;
  const shown = verdict.overrode ?? verdict.result; // after an override, the overridden result
  const guestId = verdict.reservation?.id ?? null;
  const queued: Queued = { ...scan, shown, guestId, admitted, moved, reached };
  const people = Math.abs(admitted + moved);
  if (people === 0 || guestId === null) return queued;
  if (scan.override || moved !== 0) queued.arrivals = people;
  if (scan.code !== undefined && classify(scan.code).kind !== "pass") queued.reservationId = guestId;
  return queued;
}

/** Return the queue entry for an undone scan. The box only logs it and admits nobody. */
export function undoneEntry(queued: Queued, reason: string): Queued {
  const { override: _override, arrivals: _arrivals, ...scan } = queued;
  return { ...scan, shown: "undone", admitted: 0, moved: 0, reason };
}
