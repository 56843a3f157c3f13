/** The connection to the box. It reconnects, sends queued scans, and follows the event feed. */
import { LiveFeed, type Told } from "../shared/live_feed";
import { BoxUnreachable, NotPaired, Refused, type Synced } from "./box";
import type { DoorState } from "./door_state";
import type { Conflict, FirstCheckIn, Guest, Queued, Totals } from "./types";

const RETRY_MS = [500, 1000, 2000, 4000, 8000];
const FIRST_TIMEOUT_MS = 3000; // for the first request while the box is unreachable
const REFRESH_MS = 60_000;
const REFRESH_DELAY_MS = 400;
const BATCH = 50;
const MALFORMED = "VALIDATION_ERROR";

interface FeedEvent {
  evening?: string;
  reservation?: Guest;
  scanId?: string;
  admitted?: number;
  moved?: number;
  totals?: Totals;
  firstCheckIn?: FirstCheckIn | null;
  conflict?: Conflict;
}

export class BoxConnection {
  private feed: LiveFeed | null = null;
  private retryTimer = 0;
  private refreshTimer = 0;
  private refreshInterval = 0;
  private attempts = 0;
  private connecting = false;
  private reconnectRequested = false;
  private readonly stopped = new AbortController();
  private readonly refused = new Set<string>();
  private refusal: Refused | null = null;
  private lastEvent = "";

  constructor(
    private readonly doorState: DoorState,
    private readonly undoReason: () => string,
  ) {
    doorState.onUnreachable = () => this.disconnect();
  }

  /** Connect now, and reconnect whenever the connection is lost. */
  start(): void {
    const { signal } = this.stopped;
    addEventListener("online", () => this.connect(), { signal });
    addEventListener("offline", () => this.disconnect(), { signal });
    document.addEventListener("visibilitychange", () => {
      if (document.visibilityState === "visible") this.connect();
    }, { signal });
    this.refreshInterval = setInterval(() => this.refresh(), REFRESH_MS);
    this.connect();
  }

  /** Stop permanently. Results of pending requests are ignored. */
  stop(): void {
    this.stopped.abort();
    this.feed?.close();
    this.doorState.isOnline = false;
    clearInterval(this.refreshInterval);
    clearTimeout(this.retryTimer);
    clearTimeout(this.refreshTimer);
  }

  private get isStopped(): boolean {
    return this.stopped.signal.aborted;
  }

  /**
   * Synchronise with the box. If a synchronisation is running, start the next one when it ends. If
   * both ran at once, an older guest list could replace a newer one.
   */
  connect(): void {
    clearTimeout(this.retryTimer);
    if (this.isStopped) return;
    if (this.connecting) {
      this.reconnectRequested = true;
      return;
    }
    this.reconnectRequested = false;
    this.connecting = true;
    void this.attempt().finally(() => {
      this.connecting = false;
      if (this.reconnectRequested) this.connect();
    });
  }

  /**
   * Synchronise again if the box is reachable, because the feed does not report changes of the
   * terminal, the time, the keys and the snapshot.
   */
  private refresh(): void {
    if (this.doorState.isOnline) this.connect();
  }

  private async attempt(): Promise<void> {
    try {
      await this.synchronise();
    } catch (error) {
      if (this.isStopped) return;
      if (error instanceof NotPaired) this.doorState.listeners.unpaired(error.revoked);
      else if (error instanceof BoxUnreachable) this.disconnect();
      else {
        if (!(error instanceof Refused)) reportError(error);
        this.retryLater();
      }
    }
  }

  /** Switch to offline mode and retry. */
  private disconnect(): void {
    this.feed?.close();
    this.setOnline(false);
    this.retryLater();
  }

  private retryLater(): void {
    clearTimeout(this.retryTimer);
    const wait = RETRY_MS[Math.min(this.attempts++, RETRY_MS.length - 1)];
    if (!this.isStopped) this.retryTimer = setTimeout(() => this.connect(), wait);
  }

  private async synchronise(): Promise<void> {
    const { doorState } = this;
    this.lastEvent ||= (await doorState.storage.get("lastEvent")) ?? "";
    const timeout = doorState.isOnline ? undefined : FIRST_TIMEOUT_MS;
    await doorState.setIdentity(await doorState.box.me(timeout));
    await this.sync();
    this.setOnline(true);
    await this.sync(); // send the scans that were queued during the first call
    this.listen();
    await doorState.refreshSnapshot();
    if (!doorState.hasRole("search")) return;
    const { items, conflicts, totals } = await doorState.box.evening();
    if (this.isStopped) return;
    doorState.replaceGuests(items);
    doorState.setWithoutTable(totals.withoutTable);
    for (const conflict of conflicts) await this.reportConflict(conflict, null);
  }

  private setOnline(isOnline: boolean): void {
    if (this.isStopped) return;
    this.doorState.isOnline = isOnline;
    this.doorState.listeners.changed();
  }

  /** Send queued scans, oldest first. Each scan stays queued until the box has responded. */
  private async sync(): Promise<void> {
    const { doorState } = this;
    const { storage } = doorState;
    this.refusal = null;
    for (const waiting of this.batches(await storage.queue())) {
      const batch = await storage.markSent(waiting);
      for (const result of await this.send(batch)) {
        const undone = await storage.confirmSent(result.scanId);
        if (undone) {
          await this.undo(undone);
          await storage.dequeue(undone.scanId);
        } else doorState.updateGuest(result.reservation);
        if (result.conflict) await this.reportConflict(result.conflict, result.reservation);
      }
    }
    doorState.refusal = this.refusal;
    await doorState.countPending();
    doorState.listeners.changed();
  }

  /**
   * Split the queue into batches. A batch ends after a scan that was undone: the box must undo it
   * before it counts the same party again. Scans that were refused before come last, one per batch.
   */
  private batches(queue: readonly Queued[]): Queued[][] {
    const batches: Queued[][] = [];
    for (const scan of queue.filter(({ scanId }) => !this.refused.has(scanId))) {
      const last = batches.at(-1);
      if (last && last.length < BATCH && !last.at(-1)?.undone) last.push(scan);
      else batches.push([scan]);
    }
    const refused = queue.filter((scan) => this.refused.has(scan.scanId));
    return [...batches, ...refused.map((scan) => [scan])];
  }

  /**
   * Send one batch. If the box refuses it, send its scans one by one. A scan that is then refused
   * stays queued, and the box's reason is shown. A malformed scan is dropped.
   */
  private async send(batch: readonly Queued[]): Promise<Synced[]> {
    const [only] = batch;
    if (!only) return [];
    try {
      return await this.doorState.box.sync(batch, this.doorState.now());
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      if (batch.length === 1) {
        this.refused.add(only.scanId);
        if (error.code === MALFORMED) await this.doorState.dropScan(only, error.message);
        else this.refusal = error;
        return [];
      }
      const results: Synced[] = [];
      for (const scan of batch) results.push(...(await this.send([scan])));
      return results;
    }
  }

  private async undo(sent: Queued): Promise<void> {
    try {
      const reason = sent.reason ?? this.undoReason(); // an older app version stored no reason
      const undone = await this.doorState.box.undo(sent.scanId, reason);
      this.doorState.updateGuest(undone.reservation);
    } catch (error) {
      if (!(error instanceof Refused)) throw error; // the box refuses if the scan admitted nobody
    }
  }

  /** Show a conflict once, and only if one of its admissions was made at this terminal. */
  private async reportConflict(conflict: Conflict, guest: Guest | null): Promise<void> {
    const ownId = this.doorState.me?.terminal.id ?? "";
    const concernsUs = conflict.admissions.some((admission) => admission.terminalId === ownId);
    if (!concernsUs || conflict.acknowledged) return;
    const known = this.doorState.guests.get(conflict.reservationId ?? "");
    const kept = { ...conflict, guest: guest ?? known ?? null };
    const before = await this.doorState.storage.addConflict(kept);
    if (!before) this.doorState.listeners.conflict(kept);
    else if (before.dismissed) await this.doorState.acknowledge(conflict.id, before.corrected);
  }

  private listen(): void {
    if (this.isStopped) return;
    this.feed ??= new LiveFeed(`${this.doorState.environment}!door`, this.lastEvent, {
      told: (told) => void this.receive(told),
      open: () => {
        this.attempts = 0;
      },
      lost: () => this.retryLater(), // connect() notices if the token is revoked (401)
    });
    this.feed.follow();
  }

  private async receive({ kind, id, data }: Told): Promise<void> {
    if (this.isStopped) return;
    if (kind === "revoked") return this.doorState.listeners.unpaired(true);
    const event = data as FeedEvent;
    const guest = event.reservation ?? null;
    if (guest) {
      const { scanId, admitted = 0, moved = 0, firstCheckIn = null } = event;
      if (scanId !== undefined) {
        this.doorState.noteFeedCheckIn(scanId, admitted, moved, guest, firstCheckIn);
      }
      this.doorState.updateGuest(guest);
      this.doorState.firstCheckIns.record(guest.id, event.firstCheckIn);
    }
    if (event.totals) this.doorState.setWithoutTable(event.totals.withoutTable);
    if (kind === "conflict" && event.conflict) await this.reportConflict(event.conflict, guest);
    this.lastEvent = id;
    await this.doorState.storage.put("lastEvent", this.lastEvent);
    const isAnother = event.evening !== undefined && event.evening !== this.doorState.me?.evening;
    if (kind === "change" || kind === "reset" || isAnother) {
      clearTimeout(this.refreshTimer);
      this.refreshTimer = setTimeout(() => this.refresh(), REFRESH_DELAY_MS);
    }
  }
}
