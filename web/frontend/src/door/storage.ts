/**
 * The terminal's data in IndexedDB. It contains no contact data and is deleted when the terminal is
 * revoked. If the browser cannot store changes, they stay in memory, so that the door keeps
 * working.
 */
import { type DBSchema, deleteDB, type IDBPDatabase, type IDBPTransaction, openDB } from "idb";
import { undoneEntry } from "./offline";
import type {
  UnansweredScan, Me, Presence, Queued, SignedSnapshot, StoredConflict,
} from "./types";

interface StoredValues {
  me: Me;
  snapshot: SignedSnapshot;
  /** The box's clock minus this phone's clock, in milliseconds. */
  ahead: number;
  lastEvent: string;
  /** The scan whose response from the box is still pending. */
  asked: UnansweredScan | null;
}

interface Door extends DBSchema {
  kept: { key: string; value: StoredValues[keyof StoredValues] };
  arrived: { key: string; value: Presence };
  queue: { key: string; value: Queued };
  conflicts: { key: string; value: StoredConflict };
}

interface StoredEvening {
  snapshot: SignedSnapshot | null;
  presence: Map<string, Presence>;
}

type Store = "kept" | "arrived" | "queue" | "conflicts";
type Writing = IDBPTransaction<Door, Store[], "readwrite">;

const STORES: Store[] = ["kept", "arrived", "queue", "conflicts"];

/** The stored data of one environment. */
export class Storage {
  private opened: Promise<IDBPDatabase<Door>> | null = null;
  private readonly fallback = new MemoryFallback();
  /** True if the last change could not be stored and will be lost when the page closes. */
  failing = false;

  constructor(private readonly name: string) {}

  async get<K extends keyof StoredValues>(key: K): Promise<StoredValues[K] | undefined> {
    const found = await this.read((database) => database.get("kept", key));
    return (found ?? undefined) as StoredValues[K] | undefined;
  }

  async put<K extends keyof StoredValues>(key: K, value: StoredValues[K]): Promise<void> {
    await this.write(
      async (tx) => void (await tx.objectStore("kept").put(value, key)),
      () => undefined,
    );
  }

  /**
   * Read the snapshot and the arrival counts in one transaction. Returns null if they are
   * unreadable.
   */
  async evening(): Promise<StoredEvening | null> {
    const found = await this.read(async (database) => {
      const tx = database.transaction(["kept", "arrived"]);
      const counts = tx.objectStore("arrived");
      return Promise.all([
        tx.objectStore("kept").get("snapshot"), counts.getAllKeys(), counts.getAll(), tx.done,
      ]);
    });
    if (!found) return null;
    const [snapshot, keys, values] = found;
    const stored = values.map((count, n): [string, Presence] => [keys[n] ?? "", count]);
    const presence = new Map([...stored, ...this.fallback.arrived]);
    return { snapshot: (snapshot as SignedSnapshot | undefined) ?? null, presence };
  }

  async setPresence(guestId: string, presence: Presence): Promise<void> {
    await this.write(
      async (tx) => void (await tx.objectStore("arrived").put(presence, guestId)),
      () => void this.fallback.arrived.set(guestId, presence),
    );
  }

  /**
   * Replace the snapshot and delete the arrival counts that it already includes. Keep the counts of
   * guests with queued scans, and add `recentCounts`, the counts received since the snapshot was
   * requested. Returns the kept counts, or null if they could not be stored.
   */
  replaceSnapshot(
    snapshot: SignedSnapshot, recentCounts: ReadonlyMap<string, Presence>,
  ): Promise<Map<string, Presence> | null> {
    return this.write(async (tx) => {
      const [counts, kept] = [tx.objectStore("arrived"), tx.objectStore("kept")];
      const still = new Map(recentCounts);
      for (const { guestId } of await tx.objectStore("queue").getAll()) {
        const count = guestId === null ? undefined : await counts.get(guestId);
        if (guestId !== null && count !== undefined) still.set(guestId, count);
      }
      await counts.clear();
      await Promise.all([
        kept.put(snapshot, "snapshot"), ...[...still].map(([id, count]) => counts.put(count, id)),
      ]);
      return still;
    }, () => null);
  }

  /** Store a scan and its party's counts in one transaction, flushed to disk. */
  enqueue(scan: Queued, presence: Presence | null): Promise<void> {
    return this.write(async (tx) => {
      await tx.objectStore("queue").put(scan);
      if (scan.guestId === null || presence === null) return;
      await tx.objectStore("arrived").put(presence, scan.guestId);
    }, () => this.fallback.put(scan, presence), true);
  }

  /** Return the queued scans, oldest first. */
  async queue(): Promise<Queued[]> {
    const written = (await this.read((database) => database.getAll("queue"))) ?? [];
    const all = [...written, ...this.fallback.queue.values()];
    const byId = new Map(all.map((scan) => [scan.scanId, scan]));
    return [...byId.values()].sort((a, b) => Date.parse(a.at) - Date.parse(b.at));
  }

  async queued(scanId: string): Promise<Queued | undefined> {
    const unwritten = this.fallback.queue.get(scanId);
    return unwritten ?? (await this.read((database) => database.get("queue", scanId))) ?? undefined;
  }

  /** Mark scans as sent. Returns the current state of those that are still queued. */
  markSent(batch: readonly Queued[]): Promise<Queued[]> {
    return this.write(async (tx) => {
      const store = tx.objectStore("queue");
      const found = await Promise.all(batch.map((scan) => store.get(scan.scanId)));
      const present = found.filter((scan) => scan !== undefined);
      const still = present.map((scan) => ({ ...scan, reached: true }));
      await Promise.all(still.map((scan) => store.put(scan)));
      return still;
    }, () => batch.map((scan) => this.fallback.put({ ...scan, reached: true }, null)));
  }

  /** Remove an acknowledged scan. If it was undone after it was sent, keep it and return it. */
  confirmSent(scanId: string): Promise<Queued | null> {
    return this.write(async (tx) => {
      const now = await tx.objectStore("queue").get(scanId);
      if (now?.undone) return now;
      await tx.objectStore("queue").delete(scanId);
      return null;
    }, () => this.fallback.confirmSent(scanId));
  }

  /**
   * Mark a queued scan as undone and set the party's counts, if any. Returns false if the scan is
   * no longer queued. An undone scan is still sent, for the door log.
   */
  undo(queued: Queued, presence: Presence | null, reason: string): Promise<boolean> {
    return this.write(async (tx) => {
      const store = tx.objectStore("queue");
      const now = await store.get(queued.scanId);
      if (!now) return false;
      await store.put(now.reached ? { ...now, undone: true, reason } : undoneEntry(now, reason));
      if (now.guestId !== null && presence) {
        await tx.objectStore("arrived").put(presence, now.guestId);
      }
      return true;
    }, () => {
      this.fallback.put({ ...queued, reached: true, undone: true, reason }, presence);
      return true;
    }, true);
  }

  async dequeue(scanId: string): Promise<void> {
    await this.write(
      (tx) => tx.objectStore("queue").delete(scanId),
      () => void this.fallback.queue.delete(scanId),
    );
  }

  async conflicts(): Promise<StoredConflict[]> {
    const written = (await this.read((database) => database.getAll("conflicts"))) ?? [];
    const all = [...written, ...this.fallback.conflicts.values()];
    return [...new Map(all.map((conflict) => [conflict.id, conflict])).values()];
  }

  /** Store a conflict if it is new. Otherwise, return the stored conflict. */
  addConflict(conflict: StoredConflict): Promise<StoredConflict | undefined> {
    return this.write(async (tx) => {
      const known = await tx.objectStore("conflicts").get(conflict.id);
      if (!known) await tx.objectStore("conflicts").put(conflict);
      return known;
    }, () => this.fallback.addConflict(conflict));
  }

  async dismissConflict(id: string, corrected: boolean): Promise<void> {
    const known = (await this.conflicts()).find((conflict) => conflict.id === id);
    if (!known) return;
    const read = { ...known, dismissed: true, corrected };
    await this.write(
      async (tx) => void (await tx.objectStore("conflicts").put(read)),
      () => void this.fallback.conflicts.set(id, read),
    );
  }

  /** Delete everything except queued scans. */
  async clearEvening(): Promise<void> {
    if ((await this.queue()).length === 0) return this.wipe();
    this.fallback.arrived.clear();
    this.fallback.conflicts.clear();
    const stores = ["kept", "arrived", "conflicts"] as const;
    await this.write(
      async (tx) => void (await Promise.all(stores.map((store) => tx.objectStore(store).clear()))),
      () => undefined,
    );
  }

  /**
   * Delete everything. Clear the stores first, because another tab may block the deletion of the
   * database.
   */
  async wipe(): Promise<void> {
    this.fallback.clear();
    await this.write(
      async (tx) => void (await Promise.all(STORES.map((store) => tx.objectStore(store).clear()))),
      () => undefined,
    );
    await this.opened?.then((database) => database.close(), () => undefined);
    this.opened = null;
    const deleted = deleteDB(this.name).catch(() => undefined);
    await Promise.race([deleted, new Promise((done) => setTimeout(done, 500))]);
  }

  /** Run `ask` as in `withRetry()`, but return null if the second attempt fails too. */
  private async read<T>(ask: (database: IDBPDatabase<Door>) => Promise<T>): Promise<T | null> {
    try {
      return await this.withRetry(ask);
    } catch {
      return null;
    }
  }

  /**
   * Run `change` in one transaction, together with earlier changes that could not be stored. If the
   * transaction fails twice, run `otherwise`. With `durable`, wait until the data is on disk.
   */
  private async write<T>(
    change: (tx: Writing) => Promise<T>, otherwise: () => T, durable = false,
  ): Promise<T> {
    try {
      const answer = await this.withRetry(async (database) => {
        const durability = durable ? "strict" : "default";
        const tx = database.transaction(STORES, "readwrite", { durability });
        const held = this.fallback.copy();
        const changed = this.writeFallback(tx, held)
          .then(() => change(tx))
          .catch((error) => abortAndThrow(tx, error));
        const [made] = await Promise.all([changed, tx.done]);
        this.fallback.removeWritten(held);
        return made;
      });
      this.failing = false;
      return answer;
    } catch {
      this.failing = true;
      return otherwise();
    }
  }

  private async writeFallback(tx: Writing, held: MemoryFallback): Promise<void> {
    await Promise.all([
      ...[...held.queue.values()].map((scan) => tx.objectStore("queue").put(scan)),
      ...[...held.arrived].map(([id, count]) => tx.objectStore("arrived").put(count, id)),
      ...[...held.conflicts.values()].map((each) => tx.objectStore("conflicts").put(each)),
    ]);
  }

  /** Run `ask`. If it fails, reopen the database and run it once more. */
  private async withRetry<T>(ask: (database: IDBPDatabase<Door>) => Promise<T>): Promise<T> {
    try {
      return await ask(await this.open());
    } catch {
      this.opened = null;
      return ask(await this.open());
    }
  }

  private open(): Promise<IDBPDatabase<Door>> {
    this.opened ??= openDB<Door>(this.name, 1, {
      upgrade(database) {
        database.createObjectStore("kept");
        database.createObjectStore("arrived");
        database.createObjectStore("queue", { keyPath: "scanId" });
        database.createObjectStore("conflicts", { keyPath: "id" });
      },
      blocking: (_current, _next, event) => (event.target as IDBDatabase).close(),
      terminated: () => {
        this.opened = null;
      },
    });
    return this.opened;
  }
}

/** Abort the transaction, so that no part of the change is stored, and throw `error`. */
function abortAndThrow(tx: Writing, error: unknown): never {
  try {
    tx.abort();
  } catch {
    // the transaction has already ended
  }
  throw error;
}

/** Changes that could not be stored. The next successful change stores them too. */
class MemoryFallback {
  constructor(
    readonly queue = new Map<string, Queued>(),
    readonly arrived = new Map<string, Presence>(),
    readonly conflicts = new Map<string, StoredConflict>(),
  ) {}

  put(scan: Queued, presence: Presence | null): Queued {
    this.queue.set(scan.scanId, scan);
    if (scan.guestId !== null && presence !== null) this.arrived.set(scan.guestId, presence);
    return scan;
  }

  confirmSent(scanId: string): Queued | null {
    const now = this.queue.get(scanId);
    if (now?.undone) return now;
    this.queue.delete(scanId);
    return null;
  }

  addConflict(conflict: StoredConflict): StoredConflict | undefined {
    const known = this.conflicts.get(conflict.id);
    if (!known) this.conflicts.set(conflict.id, conflict);
    return known;
  }

  copy(): MemoryFallback {
    return new MemoryFallback(new Map(this.queue), new Map(this.arrived), new Map(this.conflicts));
  }

  /** Remove the entries in `written`, which are now stored, unless they have changed again. */
  removeWritten(written: MemoryFallback): void {
    for (const name of ["queue", "arrived", "conflicts"] as const) {
      const held: Map<string, unknown> = this[name];
      for (const [key, value] of written[name]) if (held.get(key) === value) held.delete(key);
    }
  }

  clear(): void {
    for (const held of [this.queue, this.arrived, this.conflicts]) held.clear();
  }
}
