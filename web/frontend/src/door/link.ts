/** The thread to the box: finds it again by itself, brings what was queued, listens to the feed. */
import { NotPaired, OutOfReach, Refused, type Synced } from "./box";
import type { Keeper } from "./keeper";
import type { Conflict, Guest, Queued } from "./types";

const RETRY_MS = [500, 1000, 2000, 4000, 8000];
const RENEW_MS = 60_000;
const SETTLE_MS = 400;
const BATCH = 50;
const FEED_EVENTS = ["check-in", "change", "conflict", "totals", "revoked", "reset"] as const;

interface FeedEvent {
  reservation?: Guest;
  conflict?: Conflict;
}

export class Link {
  private feed: EventSource | null = null;
  private timer = 0;
  private settling = 0;
  private tries = 0;
  private connecting: Promise<void> | null = null;
  private ended = false;
  private lastEvent = "";

  constructor(
    private readonly keeper: Keeper,
    private readonly undoReason: () => string,
  ) {
    keeper.lost = () => this.lose();
  }

  /** Look for the box now, and from now on. */
  start(): void {
    addEventListener("online", () => this.connect());
    addEventListener("offline", () => this.lose());
    document.addEventListener("visibilitychange", () => {
      if (document.visibilityState === "visible") this.connect();
    });
    setInterval(() => void this.renew(), RENEW_MS);
    this.connect();
  }

  end(): void {
    this.ended = true;
    this.feed?.close();
    clearTimeout(this.timer);
  }

  connect(): void {
    clearTimeout(this.timer);
    if (this.ended) return;
    this.connecting ??= this.reach().finally(() => {
      this.connecting = null;
    });
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
    try {
      this.lastEvent = (await this.keeper.storage.get("lastEvent")) ?? "";
      await this.keeper.introduce(await this.keeper.box.me(3000));
      await this.sync();
      this.tell(true);
      await this.sync(); // what was decided while the others travelled
      this.listen();
      await this.refresh();
    } catch (fault) {
      if (fault instanceof NotPaired) this.keeper.listeners.unpaired(fault.revoked);
      else if (fault instanceof OutOfReach) this.lose();
      else {
        if (!(fault instanceof Refused)) reportError(fault);
        this.again();
      }
    }
  }

  private tell(up: boolean): void {
    this.keeper.up = up;
    this.keeper.listeners.changed();
  }

  private async refresh(): Promise<void> {
    const { keeper } = this;
    await keeper.renewSnapshot();
    if (!keeper.may("search")) return;
    const { items, conflicts } = await keeper.box.evening();
    keeper.fill(items);
    for (const conflict of conflicts) await this.report(conflict, null);
  }

  private async renew(): Promise<void> {
    if (!this.keeper.up) return;
    try {
      await this.sync();
      await this.refresh();
    } catch (fault) {
      if (fault instanceof NotPaired) this.keeper.listeners.unpaired(fault.revoked);
      else if (fault instanceof OutOfReach) this.lose();
    }
  }

  /** Bring what was decided while apart, oldest first. Nothing leaves the queue unanswered. */
  private async sync(): Promise<void> {
    const { keeper } = this;
    const { storage } = keeper;
    const queue = await storage.queue();
    for (let at = 0; at < queue.length; at += BATCH) {
      const batch = await storage.sending(queue.slice(at, at + BATCH));
      for (const result of await this.send(batch)) {
        const undone = await storage.settle(result.scanId);
        if (undone) {
          await this.undo(undone);
          await storage.dequeue(undone.scanId);
        } else keeper.learn(result.reservation);
        if (result.conflict) await this.report(result.conflict, result.reservation);
      }
    }
    await keeper.recount();
    keeper.listeners.changed();
  }

  /** One that the box refuses waits for a human, and holds up none of the others. */
  private async send(batch: readonly Queued[]): Promise<Synced[]> {
    try {
      return await this.keeper.box.sync(batch, this.keeper.now());
    } catch (fault) {
      if (!(fault instanceof Refused)) throw fault;
      if (batch.length < 2) return [];
      const results: Synced[] = [];
      for (const one of batch) results.push(...(await this.send([one])));
      return results;
    }
  }

  private async undo(sent: Queued): Promise<void> {
    try {
      const undone = await this.keeper.box.undo(sent.scanId, this.undoReason());
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
    const kept = { ...conflict, guest: guest ?? this.keeper.guests.get(conflict.reservationId) ?? null };
    const before = await this.keeper.storage.addConflict(kept);
    if (!before) this.keeper.listeners.conflict(kept);
    else if (before.dismissed) await this.keeper.acknowledge(conflict.id);
  }

  private listen(): void {
    if (this.feed) return;
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
    if (guest) this.keeper.learn(guest);
    if (name === "conflict" && event.conflict) await this.report(event.conflict, guest);
    this.lastEvent = message.lastEventId;
    await this.keeper.storage.put("lastEvent", this.lastEvent);
    if (name === "change" || name === "reset") {
      clearTimeout(this.settling);
      this.settling = setTimeout(() => void this.renew(), SETTLE_MS);
    }
  }
}
