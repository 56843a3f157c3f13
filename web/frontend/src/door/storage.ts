/**
 * What the phone keeps: no contact data, and gone as soon as the terminal is revoked. A browser
 * that keeps nothing, or nothing more, stops no guest: what it would not take stays in memory.
 */
import { type DBSchema, deleteDB, type IDBPDatabase, type IDBPTransaction, openDB } from "idb";
import { takenBack } from "./queued";
import { Spare } from "./spare";
import type { Asked, Conflict, Guest, Me, Queued, SignedSnapshot } from "./types";

export interface KeptConflict extends Conflict {
  guest: Guest | null;
  /** Somebody has read it; it stays, so that it is not reported again. */
  dismissed?: boolean;
}

interface Kept {
  me: Me;
  snapshot: SignedSnapshot;
  /** Milliseconds by which the box's clock is ahead of this phone's. */
  ahead: number;
  lastEvent: string;
  /** What the box has not answered yet; null once it has. */
  asked: Asked | null;
}

interface Door extends DBSchema {
  kept: { key: string; value: Kept[keyof Kept] };
  arrived: { key: string; value: number };
  queue: { key: string; value: Queued };
  conflicts: { key: string; value: KeptConflict };
}

type Store = "kept" | "arrived" | "queue" | "conflicts";
type Writing = IDBPTransaction<Door, Store[], "readwrite">;

const STORES: Store[] = ["kept", "arrived", "queue", "conflicts"];

/** One environment's store in this browser. */
export class Storage {
  private opened: Promise<IDBPDatabase<Door>> | null = null;
  private readonly spare = new Spare();
  /** The last change was not written down: it lasts as long as this page is open. */
  failing = false;

  constructor(private readonly name: string) {}

  async get<K extends keyof Kept>(key: K): Promise<Kept[K] | undefined> {
    const found = await this.read((database) => database.get("kept", key));
    return (found ?? undefined) as Kept[K] | undefined;
  }

  async put<K extends keyof Kept>(key: K, value: Kept[K]): Promise<void> {
    await this.write(async (tx) => void (await tx.objectStore("kept").put(value, key)), () => undefined);
  }

  /** The list and how many of each party are in, as one: null when they cannot be read. */
  async evening(): Promise<{ snapshot: SignedSnapshot | null; arrived: Map<string, number> } | null> {
    const found = await this.read(async (database) => {
      const tx = database.transaction(["kept", "arrived"]);
      const counts = tx.objectStore("arrived");
      return Promise.all([
        tx.objectStore("kept").get("snapshot"), counts.getAllKeys(), counts.getAll(), tx.done,
      ]);
    });
    if (!found) return null;
    const [snapshot, keys, values] = found;
    const arrived = new Map(keys.map((key, n) => [key, values[n] ?? 0]));
    for (const [id, count] of this.spare.arrived) arrived.set(id, count);
    return { snapshot: (snapshot as SignedSnapshot | undefined) ?? null, arrived };
  }

  async count(guestId: string, arrived: number): Promise<void> {
    await this.write(
      async (tx) => void (await tx.objectStore("arrived").put(arrived, guestId)),
      () => void this.spare.arrived.set(guestId, arrived),
    );
  }

  /**
   * A new list counts by itself: what was heard before it is in it. `heard` came meanwhile, and
   * what the box has not been told of stays. Answers who is in now; null when it was not written.
   */
  replaceSnapshot(
    snapshot: SignedSnapshot, heard: ReadonlyMap<string, number>,
  ): Promise<Map<string, number> | null> {
    return this.write(async (tx) => {
      const [counts, kept] = [tx.objectStore("arrived"), tx.objectStore("kept")];
      const still = new Map(heard);
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

  /** Keep a scan and whom it let in, both or neither: a killed browser loses no guest. */
  enqueue(scan: Queued, arrived: number | null): Promise<void> {
    return this.write(async (tx) => {
      await tx.objectStore("queue").put(scan);
      if (scan.guestId === null || arrived === null) return;
      await tx.objectStore("arrived").put(arrived, scan.guestId);
    }, () => this.spare.keep(scan, arrived), true);
  }

  /** Scans that wait for the box, oldest first. */
  async queue(): Promise<Queued[]> {
    const written = (await this.read((database) => database.getAll("queue"))) ?? [];
    const all = new Map([...written, ...this.spare.queue.values()].map((one) => [one.scanId, one]));
    return [...all.values()].sort((one, other) => Date.parse(one.at) - Date.parse(other.at));
  }

  async queued(scanId: string): Promise<Queued | undefined> {
    const spare = this.spare.queue.get(scanId);
    return spare ?? (await this.read((database) => database.get("queue", scanId))) ?? undefined;
  }

  /** These go to the box now: from here on it may know them. As they are, without those gone. */
  sending(batch: readonly Queued[]): Promise<Queued[]> {
    return this.write(async (tx) => {
      const store = tx.objectStore("queue");
      const found = await Promise.all(batch.map((one) => store.get(one.scanId)));
      const still = found.filter((one) => one !== undefined).map((one) => ({ ...one, reached: true }));
      await Promise.all(still.map((one) => store.put(one)));
      return still;
    }, () => batch.map((one) => this.spare.keep({ ...one, reached: true }, null)));
  }

  /** The box has answered: gone from the queue, unless it was undone meanwhile, which is answered. */
  settle(scanId: string): Promise<Queued | null> {
    return this.write(async (tx) => {
      const now = await tx.objectStore("queue").get(scanId);
      if (now?.undone) return now;
      await tx.objectStore("queue").delete(scanId);
      return null;
    }, () => this.spare.settle(scanId));
  }

  /**
   * Take a queued scan back; `arrived` is left of its party. False when it is in the queue no more:
   * then the box has it. It stays in the queue, so that the door log has it, and why.
   */
  undo(queued: Queued, arrived: number, reason: string): Promise<boolean> {
    return this.write(async (tx) => {
      const store = tx.objectStore("queue");
      const now = await store.get(queued.scanId);
      if (!now) return false;
      await store.put(now.reached ? { ...now, undone: true, reason } : takenBack(now, reason));
      if (now.guestId !== null) await tx.objectStore("arrived").put(arrived, now.guestId);
      return true;
    }, () => {
      return Boolean(this.spare.keep({ ...queued, reached: true, undone: true, reason }, arrived));
    }, true);
  }

  async dequeue(scanId: string): Promise<void> {
    await this.write(
      (tx) => tx.objectStore("queue").delete(scanId),
      () => void this.spare.queue.delete(scanId),
    );
  }

  async conflicts(): Promise<KeptConflict[]> {
    const written = (await this.read((database) => database.getAll("conflicts"))) ?? [];
    const all = [...written, ...this.spare.conflicts.values()];
    return [...new Map(all.map((one) => [one.id, one])).values()];
  }

  /** As it was kept before; undefined when it was not known yet. */
  addConflict(conflict: KeptConflict): Promise<KeptConflict | undefined> {
    return this.write(async (tx) => {
      const known = await tx.objectStore("conflicts").get(conflict.id);
      if (!known) await tx.objectStore("conflicts").put(conflict);
      return known;
    }, () => this.spare.addConflict(conflict));
  }

  async dismissConflict(id: string): Promise<void> {
    const known = (await this.conflicts()).find((one) => one.id === id);
    if (!known) return;
    const read = { ...known, dismissed: true };
    await this.write(
      async (tx) => void (await tx.objectStore("conflicts").put(read)),
      () => void this.spare.conflicts.set(id, read),
    );
  }

  /** The list and what came of it go; scans that the box has not heard of stay. */
  async forgetEvening(): Promise<void> {
    if ((await this.queue()).length === 0) return this.wipe();
    this.spare.arrived.clear();
    this.spare.conflicts.clear();
    const stores = ["kept", "arrived", "conflicts"] as const;
    await this.write(
      async (tx) => void (await Promise.all(stores.map((store) => tx.objectStore(store).clear()))),
      () => undefined,
    );
  }

  /** Everything goes: emptied first, for another tab may hold the database open. */
  async wipe(): Promise<void> {
    this.spare.clear();
    await this.write(
      async (tx) => void (await Promise.all(STORES.map((store) => tx.objectStore(store).clear()))),
      () => undefined,
    );
    await this.opened?.then((database) => database.close(), () => undefined);
    this.opened = null;
    const deleted = deleteDB(this.name).catch(() => undefined);
    await Promise.race([deleted, new Promise((done) => setTimeout(done, 500))]);
  }

  /** What the browser answers; null when it does not, and did not when it was opened anew. */
  private async read<T>(ask: (database: IDBPDatabase<Door>) => Promise<T>): Promise<T | null> {
    try {
      return await this.twice(ask);
    } catch {
      return null;
    }
  }

  /** All of a change, with what could not be written before it; else what `otherwise` makes of it. */
  private async write<T>(
    change: (tx: Writing) => Promise<T>, otherwise: () => T, durable = false,
  ): Promise<T> {
    try {
      const answer = await this.twice(async (database) => {
        const durability = durable ? "strict" : "default";
        const tx = database.transaction(STORES, "readwrite", { durability });
        const held = this.spare.copy();
        const changed = this.bring(tx, held).then(() => change(tx));
        const [made] = await Promise.all([changed.catch((fault) => abandon(tx, fault)), tx.done]);
        this.spare.forget(held);
        return made;
      });
      this.failing = false;
      return answer;
    } catch {
      this.failing = true;
      return otherwise();
    }
  }

  private async bring(tx: Writing, held: Spare): Promise<void> {
    await Promise.all([
      ...[...held.queue.values()].map((scan) => tx.objectStore("queue").put(scan)),
      ...[...held.arrived].map(([id, count]) => tx.objectStore("arrived").put(count, id)),
      ...[...held.conflicts.values()].map((one) => tx.objectStore("conflicts").put(one)),
    ]);
  }

  /** A browser may lose its storage under a page, and have it again. */
  private async twice<T>(ask: (database: IDBPDatabase<Door>) => Promise<T>): Promise<T> {
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

/** All or nothing, also when a change fails before the browser has heard of all of it. */
function abandon(tx: Writing, fault: unknown): never {
  try {
    tx.abort();
  } catch {
    // It has ended already.
  }
  throw fault;
}
