/** The thread to the box: finds it again by itself, brings what was queued, listens to the feed. */
import { NotPaired, OutOfReach, Refused, type Synced } from "./box";
import type { Keeper } from "./keeper";
import type { Conflict, FirstCheckIn, Guest, Queued } from "./types";

const RETRY_MS = [500, 1000, 2000, 4000, 8000];
const MEET_MS = 3000; // less than for what is asked while the box is there
const RENEW_MS = 60_000;
const SETTLE_MS = 400;
const BATCH = 50;
const MALFORMED = "VALIDATION_ERROR";
const FEED_EVENTS = ["check-in", "change", "conflict", "totals", "revoked", "reset"] as const;

interface FeedEvent {
  evening?: string;
  reservation?: Guest;
  scanId?: string;
  admitted?: number;
  firstCheckIn?: FirstCheckIn | null;
  conflict?: Conflict;
}

export class Link {
  private feed: EventSource | null = null;
  private timer = 0;
  private settling = 0;
  private renewal = 0;
  private tries = 0;
  private connecting = false;
  private isWanted = false;
  private readonly life = new AbortController();
  private readonly refused = new Set<string>();
  private refusal: Refused | null = null;
  private lastEvent = "";

  constructor(
    private readonly keeper: Keeper,
    private readonly undoReason: () => string,
  ) {
    keeper.lost = () => this.lose();
  }

  /** Look for the box now, and from now on. */
  start(): void {
    const { signal } = this.life;
    addEventListener("online", () => this.connect(), { signal });
    addEventListener("offline", () => this.lose(), { signal });
    document.addEventListener("visibilitychange", () => {
      if (document.visibilityState === "visible") this.connect();
    }, { signal });
    this.renewal = setInterval(() => this.renew(), RENEW_MS);
    this.connect();
  }

  /** Nothing is asked and nothing told from here on, whatever is still under way. */
  end(): void {
    this.life.abort();
    this.feed?.close();
    this.feed = null;
    this.keeper.up = false;
    clearInterval(this.renewal);
    clearTimeout(this.timer);
    clearTimeout(this.settling);
  }

  private get ended(): boolean {
    return this.life.signal.aborted;
  }

  /** One at a time: of two lists, the one that was asked for first could be the last to come. */
  connect(): void {
    clearTimeout(this.timer);
    if (this.ended) return;
    if (this.connecting) {
      this.isWanted = true;
      return;
    }
    this.isWanted = false;
    this.connecting = true;
    void this.attempt().finally(() => {
      this.connecting = false;
      if (this.isWanted) this.connect();
    });
  }

  /** Ask again for what changes without a word: who we are, the hour, the keys, the list. */
  private renew(): void {
    if (this.keeper.up) this.connect();
  }

  private async attempt(): Promise<void> {
    try {
      await this.reach();
    } catch (fault) {
      if (this.ended) return;
      if (fault instanceof NotPaired) this.keeper.listeners.unpaired(fault.revoked);
      else if (fault instanceof OutOfReach) this.lose();
      else {
        if (!(fault instanceof Refused)) reportError(fault);
        this.again();
      }
    }
  }

  /** The box did not answer: this phone is on its own until it does. */
  private lose(): void {
    this.feed?.close();
    this.feed = null;
    this.tell(false);
    this.again();
  }

  private again(): void {
    clearTimeout(this.timer);
    const wait = RETRY_MS[Math.min(this.tries++, RETRY_MS.length - 1)];
    if (!this.ended) this.timer = setTimeout(() => this.connect(), wait);
  }

  private async reach(): Promise<void> {
    const { keeper } = this;
    this.lastEvent ||= (await keeper.storage.get("lastEvent")) ?? "";
    await keeper.introduce(await keeper.box.me(keeper.up ? undefined : MEET_MS));
    await this.sync();
    this.tell(true);
    await this.sync(); // what was decided while the others travelled
    this.listen();
    await keeper.renewSnapshot();
    if (!keeper.may("search")) return;
    const { items, conflicts } = await keeper.box.evening();
    if (this.ended) return;
    keeper.fill(items);
    for (const conflict of conflicts) await this.report(conflict, null);
  }

  private tell(up: boolean): void {
    if (this.ended) return;
    this.keeper.up = up;
    this.keeper.listeners.changed();
  }

  /** Bring what was decided while apart, oldest first. Nothing leaves the queue unanswered. */
  private async sync(): Promise<void> {
    const { keeper } = this;
    const { storage } = keeper;
    this.refusal = null;
    for (const waiting of this.batches(await storage.queue())) {
      const batch = await storage.sending(waiting);
      for (const result of await this.send(batch)) {
        const undone = await storage.settle(result.scanId);
        if (undone) {
          await this.undo(undone);
          await storage.dequeue(undone.scanId);
        } else keeper.learn(result.reservation);
        if (result.conflict) await this.report(result.conflict, result.reservation);
      }
    }
    keeper.refusal = this.refusal;
    await keeper.recount();
    keeper.listeners.changed();
  }

  /** Those that the box has refused go last and each alone: they hold up none of the others. */
  private batches(queue: readonly Queued[]): Queued[][] {
    const fresh = queue.filter((one) => !this.refused.has(one.scanId));
    const many = Array.from({ length: Math.ceil(fresh.length / BATCH) }, (_, n) =>
      fresh.slice(n * BATCH, (n + 1) * BATCH));
    return [...many, ...queue.filter((one) => this.refused.has(one.scanId)).map((one) => [one])];
  }

  /** What the box refuses waits for a human, who is told why, unless it can never be taken. */
  private async send(batch: readonly Queued[]): Promise<Synced[]> {
    const [only] = batch;
    if (!only) return [];
    try {
      return await this.keeper.box.sync(batch, this.keeper.now());
    } catch (fault) {
      if (!(fault instanceof Refused)) throw fault;
      if (batch.length === 1) {
        this.refused.add(only.scanId);
        if (fault.code === MALFORMED) await this.keeper.giveUp(only, fault.message);
        else this.refusal = fault;
        return [];
      }
      const results: Synced[] = [];
      for (const one of batch) results.push(...(await this.send([one])));
      return results;
    }
  }

  private async undo(sent: Queued): Promise<void> {
    try {
      const reason = sent.reason ?? this.undoReason(); // an older app kept none
      const undone = await this.keeper.box.undo(sent.scanId, reason);
      this.keeper.learn(undone.reservation);
    } catch (fault) {
      if (!(fault instanceof Refused)) throw fault; // refused: the box had let nobody in
    }
  }

  /** For the two doors that it concerns, and once for each. */
  private async report(conflict: Conflict, guest: Guest | null): Promise<void> {
    const mine = this.keeper.me?.terminal.id ?? "";
    const isOurs = conflict.admissions.some((one) => one.terminalId === mine);
    if (!isOurs || conflict.acknowledged) return;
    const known = this.keeper.guests.get(conflict.reservationId ?? "");
    const kept = { ...conflict, guest: guest ?? known ?? null };
    const before = await this.keeper.storage.addConflict(kept);
    if (!before) this.keeper.listeners.conflict(kept);
    else if (before.dismissed) await this.keeper.acknowledge(conflict.id);
  }

  private listen(): void {
    if (this.feed || this.ended) return;
    const after = this.lastEvent ? `?after=${encodeURIComponent(this.lastEvent)}` : "";
    const feed = new EventSource(`${this.keeper.box.base}/events${after}`);
    this.feed = feed;
    feed.onopen = () => {
      this.tries = 0;
    };
    // The browser would come back by itself, but not find out that the terminal is revoked.
    feed.onerror = () => {
      feed.close();
      this.feed = null;
      this.again();
    };
    for (const name of FEED_EVENTS) {
      feed.addEventListener(name, (event) => void this.hear(name, event));
    }
  }

  private async hear(name: (typeof FEED_EVENTS)[number], message: MessageEvent): Promise<void> {
    if (name === "revoked") return this.keeper.listeners.unpaired(true);
    const event = JSON.parse(message.data as string) as FeedEvent;
    const guest = event.reservation ?? null;
    if (guest) {
      const { scanId, admitted = 0, firstCheckIn = null } = event;
      if (scanId !== undefined) this.keeper.hear(scanId, admitted, guest, firstCheckIn);
      this.keeper.learn(guest);
      this.keeper.entries.learn(guest.id, event.firstCheckIn);
    }
    if (name === "conflict" && event.conflict) await this.report(event.conflict, guest);
    this.lastEvent = message.lastEventId;
    await this.keeper.storage.put("lastEvent", this.lastEvent);
    const isAnother = event.evening !== undefined && event.evening !== this.keeper.me?.evening;
    if (name === "change" || name === "reset" || isAnother) {
      clearTimeout(this.settling);
      this.settling = setTimeout(() => this.renew(), SETTLE_MS);
    }
  }
}
