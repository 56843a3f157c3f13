/** What the browser would not write down: kept in memory, and brought along by the next change. */
import type { KeptConflict } from "./storage";
import type { Queued } from "./types";

export class Spare {
  constructor(
    readonly queue = new Map<string, Queued>(),
    readonly arrived = new Map<string, number>(),
    readonly conflicts = new Map<string, KeptConflict>(),
  ) {}

  keep(scan: Queued, arrived: number | null): Queued {
    this.queue.set(scan.scanId, scan);
    if (scan.guestId !== null && arrived !== null) this.arrived.set(scan.guestId, arrived);
    return scan;
  }

  settle(scanId: string): Queued | null {
    const now = this.queue.get(scanId);
    if (now?.undone) return now;
    this.queue.delete(scanId);
    return null;
  }

  addConflict(conflict: KeptConflict): KeptConflict | undefined {
    const known = this.conflicts.get(conflict.id);
    if (!known) this.conflicts.set(conflict.id, conflict);
    return known;
  }

  copy(): Spare {
    return new Spare(new Map(this.queue), new Map(this.arrived), new Map(this.conflicts));
  }

  /** What `written` holds is written down, except where it has changed since. */
  forget(written: Spare): void {
    for (const name of ["queue", "arrived", "conflicts"] as const) {
      const held: Map<string, unknown> = this[name];
      for (const [key, value] of written[name]) if (held.get(key) === value) held.delete(key);
    }
  }

  clear(): void {
    for (const held of [this.queue, this.arrived, this.conflicts]) held.clear();
  }
}
