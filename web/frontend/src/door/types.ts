/** Types of the terminal protocol (docs/guide/door-protocol.md) and of the app. */

export type Colour = "green" | "amber" | "red" | "grey";
export type Role = "scan" | "search" | "override";

export interface Table {
  id?: string;
  name: string;
  number?: string | undefined;
}

/** A reservation as terminals see it, without email address and phone number. */
export interface Guest {
  id: string;
  accessCode: string | null;
  customerFirstName: string | null;
  /** The whole name, to search in, and the end of the phone number: with the role "search". */
  searchedName?: string | null;
  phoneEnd?: string | null;
  table: Table;
  date: string;
  slot: string | null;
  guests: number;
  arrived: number;
  notes: string | null;
  status: string;
  vip?: boolean;
  checkedInAt?: string | null;
  /** How many of those who arrived are out now. */
  out?: number;
  wentOutAt?: string | null;
  /** From when the party is late, if it does not come before. */
  lateFrom?: string | null;
  /** Why the table was freed. */
  gone?: "left" | "no_show" | null;
  walkIn?: boolean;
}

/** How many of a party have arrived, and how many of these are out. */
export interface Presence {
  arrived: number;
  out: number;
  wentOutAt: string | null;
}

export interface FirstCheckIn {
  at: string;
  terminal: string | null;
  by: string | null;
}

/** A verdict from the box, or from this phone if `offline`. */
export interface Verdict {
  scanId: string;
  result: string;
  colour: Colour;
  say: { staff: string; guest: string } | null;
  overridable: boolean;
  admitted: number;
  /** People who came back in. Negative if people went out. */
  moved: number;
  reservation: Guest | null;
  firstCheckIn: FirstCheckIn | null;
  candidates?: Guest[];
  overrode?: string;
  /** How full the venue is, if it is nearly full. */
  occupancy?: Occupancy | null;
  offline?: boolean;
  /** True if the admission could not be stored and will be lost when the page closes. */
  unsaved?: boolean;
  conflict?: Conflict | null;
}

export interface Occupancy {
  inside: number;
  capacity: number;
}

/**
 * An offline admission that the box would have refused, or that happened twice. `admissions` are in
 * chronological order.
 */
export interface Conflict {
  id: string;
  kind: string;
  /** The result that the box would have given. */
  despite: string;
  /**
   * The role that the override required and the terminal did not have. Null if no role was missing.
   */
  roleMissing?: string | null;
  /** Null or "" if the reservation could not be identified. Then no arrival was counted. */
  reservationId: string | null;
  other: Admission;
  admissions: Admission[];
  arrived: number;
  guests: number;
  acknowledged: boolean;
}

export interface StoredConflict extends Conflict {
  guest: Guest | null;
  /** True if staff have dismissed the conflict. It stays stored, so that it is not shown again. */
  dismissed?: boolean;
  /** True if staff want the number of those who arrived lowered to those booked. */
  corrected?: boolean;
}

export interface Admission {
  terminalId: string | null;
  terminal: string | null;
  at: string;
}

/** A scan request. Requests with the same `scanId` count as one scan. */
export interface Scan {
  scanId: string;
  code?: string;
  reservationId?: string;
  at: string;
  arrivals?: number;
  override?: { reason: string };
  /** True for people who go out. */
  leaving?: boolean;
  /** True for people without a reservation. With a `tableId`, the box books this table for them. */
  walkIn?: boolean;
  tableId?: string;
}

/** A scan before it has an id and a time. */
export type ScanRequest = Omit<Scan, "scanId" | "at">;

/**
 * A scan that was sent but has no response yet. `heard` is its verdict if the feed has reported the
 * check-in.
 */
export interface UnansweredScan {
  scan: Scan;
  heard: Verdict | null;
}

/**
 * A scan that was decided offline and that the box has not acknowledged. `reached` is true if the
 * scan was sent, so that the box may have received it. For typed text, `reservationId` identifies
 * the guest, because the box may match the text to a different guest.
 */
export interface Queued extends Scan {
  shown: string;
  guestId: string | null;
  admitted: number;
  moved: number;
  reached: boolean;
  undone?: boolean;
  /** The reason for the undo. */
  reason?: string;
}

export interface PublicKey {
  kid: number;
  publicKey: string;
}

/** The terminal, its venue and the signing keys (`GET /me`). */
export interface Me {
  terminal: { id: string; name: string; role: Role; language: string };
  venue: { id: string; name: string; tag: string; timeZone: string; eveningEndsAt: string;
    capacity: number | null };
  evening: string;
  boxTime: string;
  utcOffsetMinutes: number;
  publicKeys: PublicKey[];
}

export interface Totals {
  expected: { people: number; reservations: number };
  arrived: { people: number; reservations: number };
  inside: { people: number; reservations: number };
  /** How many of those inside are walk-ins without a table. */
  withoutTable: number;
}

/** A free table for walk-ins. */
export interface FreeTable {
  id: string;
  name: string;
  number: string;
  capacityMax: number;
}

export interface SnapshotPass {
  passId: string;
  generation: number;
  reservationId: string;
  guests: number;
  arrived: number;
  state: string;
  firstName: string | null;
  searchedName?: string | null;
  phoneEnd?: string | null;
  table: string;
  tableNumber?: string;
  slot: string | null;
  accessCode: string | null;
  out?: number;
  wentOutAt?: string;
  lateFrom?: string;
  /** Present if access codes were replaced. */
  replacedCodes?: string[];
  /** Present if a guest of the party is checked in. */
  firstCheckIn?: FirstCheckIn;
}

export interface Snapshot {
  environment: string;
  venueTag: string;
  evening: string;
  madeAt: string;
  expiresAt: string;
  earlyMinutes: number;
  timeZone: string;
  slots: { start: string; end: string }[];
  passes: SnapshotPass[];
  withoutTable?: number;
}

export interface SignedSnapshot {
  payload: string;
  kid: number;
  signature: string;
  /** The ETag of the snapshot. */
  etag?: string | null;
}
