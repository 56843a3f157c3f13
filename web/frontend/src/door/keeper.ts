/**
 * What this phone knows and decides: it asks the box, and when the box does not answer in time it
 * decides by itself, under the same scanId, so that nothing counts twice.
 */
import { type Box, NotPaired, OutOfReach, Refused } from "./box";
import { FirstEntries } from "./first_entries";
import { judge, type Known, listGuests, UNLISTED } from "./offline";
import { snapshotIsSigned } from "./signature";
import type { KeptConflict, Storage } from "./storage";
import { toQueue } from "./queued";
import type { Asked, FirstCheckIn, Guest, Me, Queued, Scan, SignedSnapshot, Snapshot, Verdict } from "./types";

const CLOCK_MS = 1000; // less is the network's own delay
const SAME_SCAN_MS = 60_000; // a page that was loaded anew meanwhile asks the same once more
const CODE_MAX = 2048; // signs; the box takes no more, and nothing of ours is as long

/** Who wants to hear of what. */
export interface Listeners {
  changed(): void;
  conflict(conflict: KeptConflict): void;
  unpaired(revoked: boolean): void;
}

export class Keeper {
  me: Me | null = null;
  up = false;
  waiting = 0;
  /** How many people those let in. */
  unheard = 0;
  /** Why the box does not take what waits, of the last that it refused. */
  refusal: Refused | null = null;
  /** The box's newest list was not signed by a key that it owns to: what is held is older. */
  listRefused = false;
  readonly guests = new Map<string, Guest>();
  private signed: SignedSnapshot | null = null;
  private snapshot: Snapshot | null = null;
  private arrived = new Map<string, number>();
  private heard = new Map<string, Guest>();
  private unwritten = false;
  private ahead = 0;
  private asked: Asked | null = null;
  private turn: Promise<unknown> = Promise.resolve();
  readonly entries = new FirstEntries();
  lost: () => void = () => undefined;

  constructor(
    readonly box: Box,
    readonly storage: Storage,
    readonly environment: string,
    readonly listeners: Listeners,
  ) {}

  /** What was kept: enough to answer before the box has been reached. */
  async load(): Promise<void> {
    this.me = (await this.storage.get("me")) ?? null;
    this.ahead = (await this.storage.get("ahead")) ?? 0;
    this.asked = (await this.storage.get("asked")) ?? null;
    await this.recall();
    await this.recount();
    this.fillFromSnapshot();
  }

  /** How many scans the box has still to hear of. */
  async recount(): Promise<void> {
    const queue = await this.storage.queue();
    this.entries.recall(queue, this.me?.terminal.name ?? "");
    this.waiting = queue.length;
    this.unheard = queue.reduce((sum, { admitted, undone }) => sum + (undone ? 0 : admitted), 0);
  }

  async introduce(me: Me): Promise<void> {
    this.me = me;
    const ahead = Date.parse(me.boxTime) - Date.now();
    this.ahead = Math.abs(ahead) < CLOCK_MS ? 0 : ahead;
    await this.storage.put("me", me);
    await this.storage.put("ahead", this.ahead);
  }

  /** Milliseconds since 1970 by the box's clock, as well as this phone knows it. */
  now(): number {
    return Date.now() + this.ahead;
  }

  /** When the list that is good without the box was made; null without one. */
  get listMadeAt(): string | null {
    return this.snapshot?.madeAt ?? null;
  }

  may(role: "search" | "override"): boolean {
    const mine = this.me?.terminal.role ?? "scan";
    return mine === "override" || mine === role;
  }

  async decide(wish: Omit<Scan, "scanId" | "at">): Promise<Verdict> {
    const at = new Date(this.now()).toISOString();
    const signs = [...(wish.code ?? "")];
    const code = signs.length > CODE_MAX ? { code: signs.slice(0, CODE_MAX).join("") } : {};
    const scan = { scanId: crypto.randomUUID(), at, ...wish, ...code };
    const before = this.asked && isSameWish(this.asked.scan, scan) ? this.asked.scan : null;
    try {
      const verdict = await this.decideAs(before ?? scan, before !== null);
      this.keepAsked(null);
      return verdict;
    } catch (fault) {
      if (fault instanceof Refused) this.keepAsked(null);
      throw fault;
    }
  }

  private keepAsked(asked: Asked | null): void {
    if (asked === null && this.asked === null) return;
    this.asked = asked;
    void this.storage.put("asked", asked);
  }

  /** Who came in by the scan that is asked about: where its answer is lost, this is the answer. */
  hear(scanId: string, admitted: number, guest: Guest, first: FirstCheckIn | null): void {
    if (this.asked?.scan.scanId !== scanId) return;
    const heard: Verdict = {
      scanId, result: admitted < guest.arrived ? "party_added" : "checked_in", colour: "green",
      say: null, overridable: false, admitted, reservation: guest, firstCheckIn: first,
    };
    this.keepAsked({ ...this.asked, heard });
  }

  private async decideAs(scan: Scan, wasAsked: boolean): Promise<Verdict> {
    const asked = this.up;
    if (asked) {
      if (!wasAsked) this.keepAsked({ scan, heard: null });
      try {
        const verdict = await this.box.decide(scan);
        this.learn(verdict.reservation);
        return verdict;
      } catch (fault) {
        if (fault instanceof NotPaired) this.listeners.unpaired(fault.revoked);
        if (!(fault instanceof OutOfReach)) throw fault;
        this.lost();
      }
    }
    return this.alone(() => this.decideHere(scan, asked || wasAsked));
  }

  /** One decision at a time, in all tabs: two at once would both find the party missing. */
  private alone<T>(decide: () => Promise<T>): Promise<T> {
    const run = () =>
      "locks" in navigator ? navigator.locks.request(this.environment, decide) : decide();
    const next = this.turn.then(run, run);
    this.turn = next.catch(() => undefined);
    return next as Promise<T>;
  }

  private async decideHere(scan: Scan, reached: boolean): Promise<Verdict> {
    await this.recall();
    const heard = this.asked?.scan.scanId === scan.scanId ? this.asked.heard : null;
    const verdict = heard ?? (await judge(scan, this.known()));
    const arrived = verdict.admitted > 0 ? verdict.reservation?.arrived ?? null : null;
    await this.storage.enqueue(toQueue(scan, verdict, reached), arrived);
    if (arrived !== null) this.learn(verdict.reservation);
    await this.recount();
    this.listeners.changed();
    return arrived !== null && this.storage.failing ? { ...verdict, unsaved: true } : verdict;
  }

  /** The list and its counts as another tab may have left them: one is worth nothing by the other. */
  private async recall(): Promise<void> {
    const kept = this.unwritten ? null : await this.storage.evening();
    if (!kept) return;
    if (kept.snapshot && this.me && !(await this.trust(kept.snapshot))) return;
    this.arrived = kept.arrived;
  }

  /**
   * Take a check-in back; null when the box holds that there is nothing to take back. `late` is
   * the reason given where the ten seconds of the box, which began before ours, are over.
   */
  async undo(verdict: Verdict, late: string): Promise<Verdict | null> {
    const undone = await this.alone(() => this.undoHere(verdict, late));
    if (undone) return undone;
    try {
      const answer = await this.box.undo(verdict.scanId).catch((fault: unknown) => {
        const isLate = fault instanceof Refused && fault.code === "VALIDATION_ERROR";
        if (isLate) return this.box.undo(verdict.scanId, late);
        throw fault;
      });
      this.learn(answer.reservation);
      return answer;
    } catch (fault) {
      if (fault instanceof Refused) return null;
      throw fault;
    }
  }

  /** Take back the latest check-in of a guest of the list, at whichever door it was. */
  async takeBack(guest: Guest, reason: string): Promise<Verdict> {
    const queue = await this.storage.queue();
    const mine = queue.filter((one) => one.guestId === guest.id && one.admitted > 0 && !one.undone);
    const scanId = mine.at(-1)?.scanId;
    const undone = scanId && (await this.alone(() => this.undoHere({
      scanId, result: "undone", colour: "grey", say: null, overridable: false, admitted: 0,
      reservation: guest, firstCheckIn: null,
    }, reason)));
    if (undone) return undone;
    if (!this.up) throw new OutOfReach();
    const answer = await this.box.undoLatest(guest.id, guest.arrived, reason);
    this.learn(answer.reservation);
    return answer;
  }

  /** Of a scan that waits for the box; null when none does, so that the box has to be asked. */
  private async undoHere(verdict: Verdict, reason: string): Promise<Verdict | null> {
    const queued = await this.storage.queued(verdict.scanId);
    if (!queued) return null;
    const guest = verdict.reservation;
    const arrived = Math.max(0, (guest?.arrived ?? 0) - queued.admitted);
    if (!(await this.storage.undo(queued, arrived, reason))) return null;
    await this.recount();
    const seen = guest && { ...guest, arrived };
    this.learn(seen);
    return {
      ...verdict, result: "undone", colour: "grey", say: null, overridable: false,
      admitted: -queued.admitted, reservation: seen, offline: true,
    };
  }

  /** How many of a party are in, from whoever knows. */
  learn(guest: Guest | null): void {
    if (!guest) return;
    // Who comes on another evening, or has been moved to one, is not on tonight's list.
    if (guest.date !== this.me?.evening || guest.id.startsWith(UNLISTED)) this.guests.delete(guest.id);
    else this.guests.set(guest.id, this.merged(guest));
    this.arrived.set(guest.id, guest.arrived);
    this.heard.set(guest.id, guest);
    void this.storage.count(guest.id, guest.arrived);
    this.listeners.changed();
  }

  /** A verdict with what this phone knows and it does not say: notes, attention, the first entry. */
  complete(verdict: Verdict): Verdict {
    if (!verdict.reservation) return verdict;
    const seen = { ...verdict, reservation: this.merged(verdict.reservation) };
    const now = new Date(this.now()).toISOString();
    return { ...seen, firstCheckIn: this.entries.of(seen, now, this.me?.terminal.name ?? "") };
  }

  private merged(guest: Guest): Guest {
    const before = this.guests.get(guest.id);
    const table = before?.table.name === guest.table.name ? before.table : {};
    return {
      ...before, ...guest,
      table: { ...table, ...guest.table }, notes: guest.notes ?? before?.notes ?? null,
    };
  }

  /** The evening list in full, with what was heard since it was asked for. */
  fill(guests: readonly Guest[]): void {
    this.guests.clear();
    for (const guest of guests) this.guests.set(guest.id, guest);
    for (const guest of [...this.heard.values()]) this.learn(guest);
    this.listeners.changed();
  }

  /** Fetch and check the list for the time when the box is out of reach. */
  async renewSnapshot(): Promise<void> {
    this.heard = new Map();
    const signed = await this.box.snapshot(this.signed);
    const isKeyKnown = this.me?.publicKeys.some((key) => key.kid === signed.kid);
    if (!isKeyKnown) await this.introduce(await this.box.me());
    this.listRefused = !(await this.trust(signed));
    if (this.listRefused) return this.listeners.changed();
    const heard = new Map([...this.heard].map(([id, guest]) => [id, guest.arrived]));
    const written = await this.storage.replaceSnapshot(signed, heard);
    this.unwritten = written === null;
    this.arrived = written ?? heard;
    if (!this.may("search") || !this.hasTonightsGuests()) this.fillFromSnapshot();
  }

  /** Whether the box's own list, which says more than the signed one, has come for this evening. */
  private hasTonightsGuests(): boolean {
    return [...this.guests.values()].some((guest) => guest.date === this.me?.evening);
  }

  /** A scan that the box can never take: it waits no more, and whom it let in somebody is told. */
  async giveUp(scan: Queued, why: string): Promise<void> {
    console.warn(`the box refused a scan: ${why}`);
    await this.storage.dequeue(scan.scanId);
    const guest = scan.guestId === null ? undefined : this.guests.get(scan.guestId);
    if (scan.admitted <= 0 || scan.undone) return;
    const other = { terminalId: null, terminal: null, at: scan.at };
    const conflict = {
      id: `refused-${scan.scanId}`, kind: "admitted_anyway", despite: "refused",
      reservationId: scan.guestId ?? "", other, admissions: [other], acknowledged: false,
      arrived: guest?.arrived ?? scan.admitted, guests: guest?.guests ?? scan.admitted,
      guest: guest ?? null,
    };
    await this.storage.addConflict(conflict);
    this.listeners.conflict(conflict);
  }

  /** Tell the box that somebody dealt with it; what does not get through is told again later. */
  async acknowledge(conflictId: string): Promise<void> {
    if (!this.up || !this.may("override")) return;
    try {
      await this.box.acknowledge(conflictId);
    } catch (fault) {
      if (fault instanceof NotPaired) this.listeners.unpaired(fault.revoked);
      else if (!(fault instanceof OutOfReach || fault instanceof Refused)) throw fault;
    }
  }

  known(): Known {
    if (!this.me) throw new NotPaired(false);
    const { me, environment, snapshot, arrived } = this;
    return { me, environment, snapshot, arrived, now: this.now() };
  }

  private async trust(signed: SignedSnapshot): Promise<boolean> {
    if (signed.payload === this.signed?.payload) return true;
    const { payload, kid, signature } = signed;
    if (!(await snapshotIsSigned(this.me?.publicKeys ?? [], kid, payload, signature))) return false;
    const snapshot = JSON.parse(payload) as Snapshot;
    if (snapshot.environment !== this.environment) return false;
    if (snapshot.venueTag !== this.me?.venue.tag) return false;
    this.signed = signed;
    this.snapshot = snapshot;
    this.entries.read(snapshot);
    return true;
  }

  private fillFromSnapshot(): void {
    if (this.me && this.snapshot) this.fill(listGuests(this.known()));
  }
}

/** Whether a page that was loaded anew is shown what it had asked the box about before. */
function isSameWish(before: Scan, now: Scan): boolean {
  const wish = ({ scanId: _id, at: _at, ...rest }: Scan) => JSON.stringify(rest);
  return wish(before) === wish(now) && Date.parse(now.at) - Date.parse(before.at) < SAME_SCAN_MS;
}
