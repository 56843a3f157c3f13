/** What goes over the wire of the terminal protocol, and what the app makes of it. */

export type Colour = "green" | "amber" | "red" | "grey";
export type Role = "scan" | "search" | "override";

export interface Table {
  id?: string;
  name: string;
  number?: string | undefined;
}

/** A reservation as the door may see it: never an email or a phone number. */
export interface Guest {
  id: string;
  accessCode: string | null;
  customerFirstName: string | null;
  table: Table;
  date: string;
  slot: string | null;
  guests: number;
  arrived: number;
  notes: string | null;
  status: string;
  vip?: boolean;
  checkedInAt?: string | null;
}

export interface FirstCheckIn {
  at: string;
  terminal: string | null;
  by: string | null;
}

/** A verdict of the box, or of this phone while the box is out of reach (`offline`). */
export interface Verdict {
  scanId: string;
  result: string;
  colour: Colour;
  say: { staff: string; guest: string } | null;
  overridable: boolean;
  admitted: number;
  reservation: Guest | null;
  firstCheckIn: FirstCheckIn | null;
  candidates?: Guest[];
  overrode?: string;
  offline?: boolean;
  /** Kept in this page's memory alone: the browser would not write it down. */
  unsaved?: boolean;
  conflict?: Conflict | null;
}

/** Two doors admitted one party while they were apart; `admissions` are both, the first first. */
export interface Conflict {
  id: string;
  kind: string;
  /** The result that the box would have given. */
  despite: string;
  /** Let in with a reason, by a phone that may not do so any more. */
  roleMissing?: string | null;
  /** Null or empty when the box cannot tell who came in: nobody was counted then. */
  reservationId: string | null;
  other: Admission;
  admissions: Admission[];
  arrived: number;
  guests: number;
  acknowledged: boolean;
}

export interface Admission {
  terminalId: string | null;
  terminal: string | null;
  at: string;
}

/** What a terminal asks for. The same `scanId` is one scan, however often it is sent. */
export interface Scan {
  scanId: string;
  code?: string;
  reservationId?: string;
  at: string;
  arrivals?: number;
  override?: { reason: string };
}

/** A scan that the box was asked about; `heard`: the feed told of its check-in. */
export interface Asked {
  scan: Scan;
  heard: Verdict | null;
}

/**
 * A scan decided here, waiting for the box. `reached`: the box may already know it. Who was let in
 * by a typed text is told by `reservationId` too: the box might find others by the text.
 */
export interface Queued extends Scan {
  shown: string;
  guestId: string | null;
  admitted: number;
  reached: boolean;
  undone?: boolean;
  /** Why it was taken back; the box did not hear of it at once. */
  reason?: string;
}

export interface PublicKey {
  kid: number;
  publicKey: string;
}

/** What a terminal knows of itself (`GET /me`). */
export interface Me {
  terminal: { id: string; name: string; role: Role; language: string };
  venue: { id: string; name: string; tag: string; timeZone: string; eveningEndsAt: string };
  evening: string;
  boxTime: string;
  utcOffsetMinutes: number;
  publicKeys: PublicKey[];
}

export interface Totals {
  expected: { people: number; reservations: number };
  arrived: { people: number; reservations: number };
}

export interface SnapshotPass {
  passId: string;
  generation: number;
  reservationId: string;
  guests: number;
  arrived: number;
  state: string;
  firstName: string | null;
  table: string;
  tableNumber?: string;
  slot: string | null;
  accessCode: string | null;
  /** Of a party that is in. */
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
}

export interface SignedSnapshot {
  payload: string;
  kid: number;
  signature: string;
  /** What the box calls this list, to be asked whether it is still the one. */
  etag?: string | null;
}
