/** When and where parties came in, as far as this phone has heard: the box knows it all. */
import type { FirstCheckIn, Queued, Snapshot, Verdict } from "./types";

export class FirstEntries {
  private readonly known = new Map<string, FirstCheckIn>();

  /** What the box has told of this party. */
  learn(guestId: string, first: FirstCheckIn | undefined | null): void {
    if (first) this.known.set(guestId, first);
  }

  /** What the box's list tells of everybody who was in when it was made. */
  read(list: Snapshot): void {
    for (const pass of list.passes) this.learn(pass.reservationId, pass.firstCheckIn);
  }

  /** What this phone decided itself and has not told the box yet, oldest first. */
  recall(queue: readonly Queued[], door: string): void {
    for (const { guestId, admitted, undone, at } of queue) {
      if (guestId === null || admitted <= 0 || undone || this.known.has(guestId)) continue;
      this.known.set(guestId, { at, terminal: door, by: null });
    }
  }

  /** The first entry of the party of this verdict, which is at `now` and at `door`. */
  of(verdict: Verdict, now: string, door: string): FirstCheckIn | null {
    const { reservation: guest, firstCheckIn, admitted } = verdict;
    if (!guest) return firstCheckIn;
    if (guest.arrived <= 0) this.known.delete(guest.id);
    else if (firstCheckIn) this.known.set(guest.id, firstCheckIn);
    else if (admitted > 0 && admitted === guest.arrived) {
      this.known.set(guest.id, { at: now, terminal: door, by: null });
    }
    const at = guest.arrived > 0 ? guest.checkedInAt : null;
    return this.known.get(guest.id) ?? (at ? { at, terminal: null, by: null } : null);
  }
}
