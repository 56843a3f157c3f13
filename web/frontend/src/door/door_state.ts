/**
 * The state of this terminal, and its decisions. A scan is sent to the box. If the box does not
 * respond in time, the phone decides offline with the same scanId, so that no scan counts twice.
 */
import { type Box, BoxUnreachable, NotPaired, Refused } from "./box";
import { decideOffline, listGuests, type OfflineData, queueEntry, UNLISTED } from "./offline";
import { snapshotIsSigned } from "./signature";
import type { Storage } from "./storage";
import type {
  UnansweredScan, FirstCheckIn, Guest, Me, Occupancy, Presence, Queued, Scan, ScanRequest,
  SignedSnapshot, Snapshot, StoredConflict, Verdict,
} from "./types";
import { WaitingNote } from "./waiting_note";

const CLOCK_MS = 1000; // a smaller difference between the clocks may only be network delay
// If the box has not answered a scan, the same request within this time is sent with the same scan
// id, even after a reload.
const SAME_SCAN_MS = 60_000;
const CODE_MAX = 2048; // in characters, the box's limit
const NEARLY_FULL = 0.95; // the box's limit for the same warning

/** Callbacks of the app. */
export interface Listeners {
  changed(): void;
  conflict(conflict: StoredConflict): void;
  unpaired(revoked: boolean): void;
}

export class DoorState {
  me: Me | null = null;
  isOnline = false;
  pendingScans = 0;
  /** The number of guests that the pending scans admitted. */
  pendingPeople = 0;
  /** The number of guests that pending scans had admitted when the browser deleted the scans. */
  missingPeople = 0;
  /** The box's error for the latest pending scan that it refused. */
  refusal: Refused | null = null;
  /** True if the newest snapshot from the box was not valid, so an older one is still in use. */
  listRefused = false;
  readonly guests = new Map<string, Guest>();
  private signed: SignedSnapshot | null = null;
  private snapshot: Snapshot | null = null;
  private presence = new Map<string, Presence>();
  /** Walk-ins without a table: those that the box counts, and those in pending scans. */
  private withoutTable = 0;
  private pendingWithoutTable = 0;
  private recentGuests = new Map<string, Guest>();
  private isUnwritten = false;
  private clockOffset = 0;
  private unanswered: UnansweredScan | null = null;
  private lastDecision: Promise<unknown> = Promise.resolve();
  private readonly note: WaitingNote;
  readonly firstCheckIns = new FirstCheckIns();
  onUnreachable: () => void = () => undefined;

  constructor(
    readonly box: Box,
    readonly storage: Storage,
    readonly environment: string,
    readonly listeners: Listeners,
  ) {
    this.note = new WaitingNote(environment);
  }

  /** Load the stored state, so that scans can be decided before the box is reached. */
  async load(): Promise<void> {
    this.me = (await this.storage.get("me")) ?? null;
    this.clockOffset = (await this.storage.get("ahead")) ?? 0;
    this.unanswered = (await this.storage.get("asked")) ?? null;
    await this.loadEvening();
    const { waiting, missing } = this.note.read();
    this.missingPeople = missing;
    await this.countPending();
    this.missingPeople += Math.max(0, waiting - this.pendingPeople);
    this.note.write(this.pendingPeople, this.missingPeople);
    this.fillFromSnapshot();
  }

  /** Call this when staff have read that entries are missing. */
  forgetMissing(): void {
    this.missingPeople = 0;
    this.note.write(this.pendingPeople, 0);
  }

  /** Call this when the pending scans are deleted on purpose. */
  forgetPending(): void {
    this.note.write(0, 0);
  }

  /** Count the scans that the box has not received. */
  async countPending(): Promise<void> {
    const queue = await this.storage.queue();
    this.firstCheckIns.readQueue(queue, this.me?.terminal.name ?? "");
    this.pendingScans = queue.length;
    const admissions = queue.filter((scan) => !scan.undone);
    this.pendingPeople = admissions.reduce((sum, { admitted }) => sum + admitted, 0);
    this.pendingWithoutTable = admissions.filter((scan) => scan.walkIn)
      .reduce((sum, { admitted, moved }) => sum + admitted + moved, 0);
    this.note.write(this.pendingPeople, this.missingPeople);
  }

  async setIdentity(me: Me): Promise<void> {
    this.me = me;
    const ahead = Date.parse(me.boxTime) - Date.now();
    this.clockOffset = Math.abs(ahead) < CLOCK_MS ? 0 : ahead;
    await this.storage.put("me", me);
    await this.storage.put("ahead", this.clockOffset);
  }

  /** Return the box's time in ms since 1970, based on the last known clock offset. */
  now(): number {
    return Date.now() + this.clockOffset;
  }

  /** The time when the offline snapshot was made, or null if there is no snapshot. */
  get snapshotMadeAt(): string | null {
    return this.snapshot?.madeAt ?? null;
  }

  /** How many people are inside the venue: who came in minus who went out. */
  get inside(): number {
    const guests = [...this.guests.values()];
    const people = guests.reduce((sum, { arrived, out = 0 }) => sum + arrived - out, 0);
    return Math.max(0, people + this.withoutTable + this.pendingWithoutTable);
  }

  setWithoutTable(people: number): void {
    this.withoutTable = people;
    this.listeners.changed();
  }

  /** How full the venue is, or null if it is not nearly full. */
  get occupancy(): Occupancy | null {
    const capacity = this.me?.venue.capacity ?? 0;
    const { inside } = this;
    return capacity > 0 && inside >= capacity * NEARLY_FULL ? { inside, capacity } : null;
  }

  hasRole(role: "search" | "override"): boolean {
    const own = this.me?.terminal.role ?? "scan";
    return own === "override" || own === role;
  }

  async decide(request: ScanRequest): Promise<Verdict> {
    const at = new Date(this.now()).toISOString();
    const characters = [...(request.code ?? "")];
    const code = characters.length > CODE_MAX ? { code: characters.slice(0, CODE_MAX).join("") } : {};
    const scan = { scanId: crypto.randomUUID(), at, ...request, ...code };
    const sent = this.unanswered?.scan;
    const before = sent && isSameRequest(sent, scan) ? sent : null;
    try {
      const verdict = await this.decideAs(before ?? scan, before !== null);
      this.setUnanswered(null);
      return verdict;
    } catch (error) {
      if (error instanceof Refused) this.setUnanswered(null);
      throw error;
    }
  }

  private setUnanswered(unanswered: UnansweredScan | null): void {
    if (unanswered === null && this.unanswered === null) return;
    this.unanswered = unanswered;
    void this.storage.put("asked", unanswered);
  }

  /** Remember a check-in from the feed, in case the response to its scan is lost. */
  noteFeedCheckIn(
    scanId: string, admitted: number, moved: number, guest: Guest, first: FirstCheckIn | null,
  ): void {
    if (this.unanswered?.scan.scanId !== scanId) return;
    const entry = admitted < guest.arrived ? "party_added" : "checked_in";
    const passage = moved < 0 ? "went_out" : "came_back";
    const heard: Verdict = {
      scanId, result: admitted > 0 ? entry : passage, colour: "green",
      say: null, overridable: false, admitted, moved, reservation: guest, firstCheckIn: first,
    };
    this.setUnanswered({ ...this.unanswered, heard });
  }

  private async decideAs(scan: Scan, wasSent: boolean): Promise<Verdict> {
    const isSent = this.isOnline;
    if (isSent) {
      if (!wasSent) this.setUnanswered({ scan, heard: null });
      try {
        const verdict = await this.box.decide(scan);
        this.updateGuest(verdict.reservation);
        return verdict;
      } catch (error) {
        if (error instanceof NotPaired) this.listeners.unpaired(error.revoked);
        if (!(error instanceof BoxUnreachable)) throw error;
        this.onUnreachable();
      }
    }
    return this.exclusively(() => this.decideLocally(scan, isSent || wasSent));
  }

  /**
   * Run only one decision at a time, across all tabs, because two at the same time could admit a
   * party twice.
   */
  private exclusively<T>(decide: () => Promise<T>): Promise<T> {
    const run = () =>
      "locks" in navigator ? navigator.locks.request(this.environment, decide) : decide();
    const next = this.lastDecision.then(run, run);
    this.lastDecision = next.catch(() => undefined);
    return next as Promise<T>;
  }

  private async decideLocally(scan: Scan, reached: boolean): Promise<Verdict> {
    await this.loadEvening();
    const heard = this.unanswered?.scan.scanId === scan.scanId ? this.unanswered.heard : null;
    const verdict = heard ?? (await decideOffline(scan, this.offlineData()));
    const isCounted = verdict.admitted > 0 || verdict.moved !== 0;
    const seen = isCounted ? verdict.reservation : null;
    await this.storage.enqueue(queueEntry(scan, verdict, reached), seen && presenceOf(seen));
    this.updateGuest(seen);
    await this.countPending();
    this.listeners.changed();
    const isEntry = verdict.admitted + verdict.moved > 0;
    const told = isEntry ? { ...verdict, occupancy: this.occupancy } : verdict;
    return isCounted && this.storage.failing ? { ...told, unsaved: true } : told;
  }

  /** Read the snapshot and its arrival counts, because another tab may have changed both. */
  private async loadEvening(): Promise<void> {
    const stored = this.isUnwritten ? null : await this.storage.evening();
    if (!stored) return;
    if (stored.snapshot && this.me && !(await this.acceptSnapshot(stored.snapshot))) return;
    this.presence = stored.presence;
  }

  /**
   * Undo a check-in. Returns null if the box refuses. If more than ten seconds have passed since
   * the check-in, the box requires a reason. The phone starts to count a little later than the box.
   * So first send no reason, and send `lateReason` only if the box asks for a reason.
   */
  async undo(verdict: Verdict, lateReason: string): Promise<Verdict | null> {
    const undone = await this.exclusively(() => this.undoLocally(verdict, lateReason));
    if (undone) return undone;
    try {
      const answer = await this.box.undo(verdict.scanId).catch((error: unknown) => {
        const isLate = error instanceof Refused && error.code === "VALIDATION_ERROR";
        if (isLate) return this.box.undo(verdict.scanId, lateReason);
        throw error;
      });
      this.updateGuest(answer.reservation);
      return answer;
    } catch (error) {
      if (error instanceof Refused) return null;
      throw error;
    }
  }

  /** Undo the latest check-in of a guest, at any door. */
  async undoLatest(guest: Guest, reason: string): Promise<Verdict> {
    const queue = await this.storage.queue();
    const own = queue.filter(
      (scan) => scan.guestId === guest.id && scan.admitted > 0 && !scan.undone,
    );
    const scanId = own.at(-1)?.scanId;
    const undone = scanId && (await this.exclusively(() => this.undoLocally({
      scanId, result: "undone", colour: "grey", say: null, overridable: false, admitted: 0,
      moved: 0, reservation: guest, firstCheckIn: null,
    }, reason)));
    if (undone) return undone;
    if (!this.isOnline) throw new BoxUnreachable();
    const answer = await this.box.undoLatest(guest.id, guest.arrived, reason);
    this.updateGuest(answer.reservation);
    return answer;
  }

  /** Undo a queued scan. Returns null if it is not queued, in which case the box must undo it. */
  private async undoLocally(verdict: Verdict, reason: string): Promise<Verdict | null> {
    const queued = await this.storage.queued(verdict.scanId);
    if (!queued) return null;
    const guest = verdict.reservation;
    const seen = guest && {
      ...guest,
      arrived: Math.max(0, guest.arrived - queued.admitted),
      out: Math.max(0, (guest.out ?? 0) + queued.moved),
    };
    if (!(await this.storage.undo(queued, seen && presenceOf(seen), reason))) return null;
    await this.countPending();
    this.updateGuest(seen);
    this.listeners.changed();
    return {
      ...verdict, result: "undone", colour: "grey", say: null, overridable: false,
      admitted: -queued.admitted, moved: -queued.moved, reservation: seen, offline: true,
    };
  }

  /** Update a guest and their counts. */
  updateGuest(guest: Guest | null): void {
    if (!guest) return;
    // Reservations for other evenings are not on tonight's list.
    const isListed = guest.date === this.me?.evening && !guest.id.startsWith(UNLISTED);
    if (!isListed) this.guests.delete(guest.id);
    else this.guests.set(guest.id, this.mergeGuest(guest));
    this.presence.set(guest.id, presenceOf(guest));
    this.recentGuests.set(guest.id, guest);
    void this.storage.setPresence(guest.id, presenceOf(guest));
    this.listeners.changed();
  }

  /** Add this phone's data to a verdict: notes, VIP mark and first check-in. */
  withLocalFacts(verdict: Verdict): Verdict {
    if (!verdict.reservation) return verdict;
    const seen = { ...verdict, reservation: this.mergeGuest(verdict.reservation) };
    const now = new Date(this.now()).toISOString();
    const door = this.me?.terminal.name ?? "";
    return { ...seen, firstCheckIn: this.firstCheckIns.of(seen, now, door) };
  }

  private mergeGuest(guest: Guest): Guest {
    const before = this.guests.get(guest.id);
    const table = before?.table.name === guest.table.name ? before.table : {};
    return {
      ...before, ...guest,
      table: { ...table, ...guest.table }, notes: guest.notes ?? before?.notes ?? null,
    };
  }

  /** Replace the guest list, then apply updates that arrived since it was requested. */
  replaceGuests(guests: readonly Guest[]): void {
    this.guests.clear();
    for (const guest of guests) this.guests.set(guest.id, guest);
    for (const guest of [...this.recentGuests.values()]) this.updateGuest(guest);
    this.listeners.changed();
  }

  /** Fetch and verify the snapshot for offline decisions. */
  async refreshSnapshot(): Promise<void> {
    this.recentGuests = new Map();
    const signed = await this.box.snapshot(this.signed);
    const isKeyKnown = this.me?.publicKeys.some((key) => key.kid === signed.kid);
    if (!isKeyKnown) await this.setIdentity(await this.box.me());
    this.listRefused = !(await this.acceptSnapshot(signed));
    if (this.listRefused) return this.listeners.changed();
    const recent = [...this.recentGuests];
    const recentCounts = new Map(recent.map(([id, guest]) => [id, presenceOf(guest)]));
    const written = await this.storage.replaceSnapshot(signed, recentCounts);
    this.isUnwritten = written === null;
    this.presence = written ?? recentCounts;
    if (!this.hasRole("search") || !this.hasTonightsGuests()) this.fillFromSnapshot();
  }

  /**
   * Whether guests of the current evening are loaded. If so, a snapshot does not replace them,
   * because the box's list has more fields than a snapshot.
   */
  private hasTonightsGuests(): boolean {
    return [...this.guests.values()].some((guest) => guest.date === this.me?.evening);
  }

  /** Drop a scan that the box will never accept. If it admitted guests, show a conflict. */
  async dropScan(scan: Queued, why: string): Promise<void> {
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

  /** Acknowledge a conflict at the box. If that fails, the next synchronisation tries again. */
  async acknowledge(conflictId: string, correct = false): Promise<void> {
    if (!this.isOnline || !this.hasRole("override")) return;
    try {
      await this.box.acknowledge(conflictId, correct);
    } catch (error) {
      if (error instanceof NotPaired) this.listeners.unpaired(error.revoked);
      else if (!(error instanceof BoxUnreachable || error instanceof Refused)) throw error;
    }
  }

  offlineData(): OfflineData {
    if (!this.me) throw new NotPaired(false);
    const { me, environment, snapshot, presence } = this;
    return { me, environment, snapshot, presence, now: this.now() };
  }

  private async acceptSnapshot(signed: SignedSnapshot): Promise<boolean> {
    if (signed.payload === this.signed?.payload) return true;
    const { payload, kid, signature } = signed;
    if (!(await snapshotIsSigned(this.me?.publicKeys ?? [], kid, payload, signature))) return false;
    const snapshot = JSON.parse(payload) as Snapshot;
    if (snapshot.environment !== this.environment) return false;
    if (snapshot.venueTag !== this.me?.venue.tag) return false;
    this.signed = signed;
    this.snapshot = snapshot;
    this.withoutTable = snapshot.withoutTable ?? 0;
    this.firstCheckIns.readSnapshot(snapshot);
    return true;
  }

  private fillFromSnapshot(): void {
    if (this.me && this.snapshot) this.replaceGuests(listGuests(this.offlineData()));
  }
}

function presenceOf({ arrived, out, wentOutAt }: Guest): Presence {
  return { arrived, out: out ?? 0, wentOutAt: wentOutAt ?? null };
}

/** Whether `now` repeats the request of `before` within SAME_SCAN_MS. */
function isSameRequest(before: Scan, now: Scan): boolean {
  const request = ({ scanId: _id, at: _at, ...rest }: Scan) => JSON.stringify(rest);
  const age = Date.parse(now.at) - Date.parse(before.at);
  return request(before) === request(now) && age < SAME_SCAN_MS;
}

/** The first check-ins known on this phone. Check-ins at other doors may be missing. */
class FirstCheckIns {
  private readonly known = new Map<string, FirstCheckIn>();

  record(guestId: string, first: FirstCheckIn | undefined | null): void {
    if (first) this.known.set(guestId, first);
  }

  /** Record the first check-ins in a snapshot. */
  readSnapshot(list: Snapshot): void {
    for (const pass of list.passes) this.record(pass.reservationId, pass.firstCheckIn);
  }

  /** Record first check-ins from this phone's unsent scans. `queue` is sorted, oldest first. */
  readQueue(queue: readonly Queued[], door: string): void {
    for (const { guestId, admitted, undone, at } of queue) {
      if (guestId === null || admitted <= 0 || undone || this.known.has(guestId)) continue;
      this.known.set(guestId, { at, terminal: door, by: null });
    }
  }

  /**
   * Return the first check-in of the verdict's party, or null if it is unknown. `now` is the time
   * of the verdict, and `door` is the name of this terminal.
   */
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
