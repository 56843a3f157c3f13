/**
 * What this phone knows and decides: it asks the box, and when the box does not answer in time it
 * decides by itself, under the same scanId, so that nothing counts twice.
 */
import { type Box, NotPaired, OutOfReach, Refused } from "./box";
import { judge, type Known, listGuests } from "./offline";
import { snapshotIsSigned } from "./signature";
import type { KeptConflict, Storage } from "./storage";
import type { Guest, Me, Queued, Scan, SignedSnapshot, Snapshot, Verdict } from "./types";

const CLOCK_MS = 1000; // less is the network's own delay

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
  readonly guests = new Map<string, Guest>();
  private signed: SignedSnapshot | null = null;
  private snapshot: Snapshot | null = null;
  private arrived = new Map<string, number>();
  private heard = new Map<string, number>();
  private ahead = 0;
  private turn: Promise<unknown> = Promise.resolve();
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
    this.arrived = await this.storage.arrived();
    this.waiting = (await this.storage.queue()).length;
    const signed = await this.storage.get("snapshot");
    if (signed && this.me) await this.trust(signed);
    this.fillFromSnapshot();
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

  decide(wish: Omit<Scan, "scanId" | "at">): Promise<Verdict> {
    const at = new Date(this.now()).toISOString();
    return this.decideAs({ scanId: crypto.randomUUID(), at, ...wish });
  }

  private async decideAs(scan: Scan): Promise<Verdict> {
    const asked = this.up;
    if (asked) {
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
    return this.alone(() => this.decideHere(scan, asked));
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
    this.arrived = await this.storage.arrived();
    const verdict = await judge(scan, this.known());
    const guestId = verdict.reservation?.id ?? null;
    const queued: Queued = {
      ...scan, shown: verdict.result, guestId, admitted: verdict.admitted, reached,
    };
    const arrived = verdict.admitted > 0 ? verdict.reservation?.arrived ?? null : null;
    await this.storage.enqueue(queued, arrived);
    if (arrived !== null) this.learn(verdict.reservation);
    this.waiting += 1;
    this.listeners.changed();
    return verdict;
  }

  /** Take a check-in back; null when the box holds that there is nothing to take back. */
  async undo(verdict: Verdict): Promise<Verdict | null> {
    const queued = await this.storage.queued(verdict.scanId);
    if (queued) return this.alone(() => this.undoHere(verdict, queued));
    try {
      const undone = await this.box.undo(verdict.scanId);
      this.learn(undone.reservation);
      return undone;
    } catch (fault) {
      if (fault instanceof Refused) return null;
      throw fault;
    }
  }

  private async undoHere(verdict: Verdict, queued: Queued): Promise<Verdict> {
    const guest = verdict.reservation;
    const arrived = Math.max(0, (guest?.arrived ?? 0) - queued.admitted);
    // The box may have heard of it before it was lost: then it has to hear of this too.
    if (queued.reached) await this.storage.enqueue({ ...queued, undone: true }, arrived);
    else {
      await this.storage.dequeue(queued.scanId);
      if (guest) await this.storage.count(guest.id, arrived);
      this.waiting = Math.max(0, this.waiting - 1);
    }
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
    if (guest.date !== this.me?.evening) this.guests.delete(guest.id);
    else this.guests.set(guest.id, this.merged(guest));
    this.arrived.set(guest.id, guest.arrived);
    this.heard.set(guest.id, guest.arrived);
    void this.storage.count(guest.id, guest.arrived);
    this.listeners.changed();
  }

  /** A verdict with what the list knows and the verdict does not say: notes, attention. */
  complete(verdict: Verdict): Verdict {
    const guest = verdict.reservation;
    return guest ? { ...verdict, reservation: this.merged(guest) } : verdict;
  }

  private merged(guest: Guest): Guest {
    const before = this.guests.get(guest.id);
    return { ...before, ...guest, notes: guest.notes ?? before?.notes ?? null };
  }

  /** The evening list, as the box tells it in full. */
  fill(guests: readonly Guest[]): void {
    this.guests.clear();
    for (const guest of guests) this.guests.set(guest.id, guest);
    this.listeners.changed();
  }

  /** Fetch and check the list for the time when the box is out of reach. */
  async renewSnapshot(): Promise<void> {
    this.heard = new Map();
    const signed = await this.box.snapshot(this.signed);
    if (!(await this.trust(signed))) return;
    for (const queued of await this.storage.queue()) {
      const arrived = queued.guestId === null ? undefined : this.arrived.get(queued.guestId);
      if (queued.guestId !== null && arrived !== undefined) this.heard.set(queued.guestId, arrived);
    }
    this.arrived = new Map(this.heard);
    await this.storage.replaceSnapshot(signed, this.arrived);
    if (!this.may("search")) this.fillFromSnapshot();
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
    return true;
  }

  private fillFromSnapshot(): void {
    if (this.me && this.snapshot) this.fill(listGuests(this.known()));
  }
}
