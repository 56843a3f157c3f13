/** What the phone keeps: no contact data, and gone as soon as the terminal is revoked. */
import { type DBSchema, deleteDB, type IDBPDatabase, openDB } from "idb";
import type { Conflict, Guest, Me, Queued, SignedSnapshot } from "./types";

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
}

interface Door extends DBSchema {
  kept: { key: string; value: Kept[keyof Kept] };
  arrived: { key: string; value: number };
  queue: { key: string; value: Queued };
  conflicts: { key: string; value: KeptConflict };
}

const STORES = ["kept", "arrived", "queue", "conflicts"] as const;

/** One environment's store in this browser. */
export class Storage {
  private opened: Promise<IDBPDatabase<Door>> | null = null;

  constructor(private readonly name: string) {}

  async get<K extends keyof Kept>(key: K): Promise<Kept[K] | undefined> {
    return (await (await this.open()).get("kept", key)) as Kept[K] | undefined;
  }

  async put<K extends keyof Kept>(key: K, value: Kept[K]): Promise<void> {
    await (await this.open()).put("kept", value, key);
  }

  /** How many of each party are in, as far as this phone has heard since its list was made. */
  async arrived(): Promise<Map<string, number>> {
    const store = (await this.open()).transaction("arrived").store;
    const [keys, values] = await Promise.all([store.getAllKeys(), store.getAll()]);
    return new Map(keys.map((key, n) => [key, values[n] ?? 0]));
  }

  async count(guestId: string, arrived: number): Promise<void> {
    await (await this.open()).put("arrived", arrived, guestId);
  }

  /** A new list counts by itself: what was heard before it is in it. */
  async replaceSnapshot(snapshot: SignedSnapshot, still: ReadonlyMap<string, number>): Promise<void> {
    const tx = (await this.open()).transaction(["kept", "arrived"], "readwrite");
    await tx.objectStore("kept").put(snapshot, "snapshot");
    await tx.objectStore("arrived").clear();
    for (const [id, arrived] of still) await tx.objectStore("arrived").put(arrived, id);
    await tx.done;
  }

  /** Keep a scan and whom it let in, both or neither: a killed browser loses no guest. */
  async enqueue(scan: Queued, arrived: number | null): Promise<void> {
    const tx = (await this.open()).transaction(["queue", "arrived"], "readwrite", {
      durability: "strict",
    });
    await tx.objectStore("queue").put(scan);
    if (scan.guestId !== null && arrived !== null) {
      await tx.objectStore("arrived").put(arrived, scan.guestId);
    }
    await tx.done;
  }

  /** Scans that wait for the box, oldest first. */
  async queue(): Promise<Queued[]> {
    const all = await (await this.open()).getAll("queue");
    return all.sort((one, other) => Date.parse(one.at) - Date.parse(other.at));
  }

  async queued(scanId: string): Promise<Queued | undefined> {
    return (await this.open()).get("queue", scanId);
  }

  async dequeue(scanId: string): Promise<void> {
    await (await this.open()).delete("queue", scanId);
  }

  async conflicts(): Promise<KeptConflict[]> {
    return (await this.open()).getAll("conflicts");
  }

  /** As it was kept before; undefined when it was not known yet. */
  async addConflict(conflict: KeptConflict): Promise<KeptConflict | undefined> {
    const tx = (await this.open()).transaction("conflicts", "readwrite");
    const known = await tx.store.get(conflict.id);
    if (!known) await tx.store.put(conflict);
    await tx.done;
    return known;
  }

  async dismissConflict(id: string): Promise<void> {
    const tx = (await this.open()).transaction("conflicts", "readwrite");
    const known = await tx.store.get(id);
    if (known) await tx.store.put({ ...known, dismissed: true });
    await tx.done;
  }

  /** The list and what came of it go; scans that the box has not heard of stay. */
  async forgetEvening(): Promise<void> {
    if ((await this.queue()).length === 0) return this.wipe();
    const stores = ["kept", "arrived", "conflicts"] as const;
    const tx = (await this.open()).transaction(stores, "readwrite");
    await Promise.all([...stores.map((store) => tx.objectStore(store).clear()), tx.done]);
  }

  /** Everything goes: emptied first, for another tab may hold the database open. */
  async wipe(): Promise<void> {
    const database = await this.open();
    const tx = database.transaction(STORES, "readwrite");
    await Promise.all([...STORES.map((store) => tx.objectStore(store).clear()), tx.done]);
    database.close();
    this.opened = null;
    await Promise.race([deleteDB(this.name), new Promise((done) => setTimeout(done, 500))]);
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
