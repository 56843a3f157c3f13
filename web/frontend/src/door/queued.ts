/** A decision of this phone's own, as the box shall hear of it. */
import { isTyped } from "./offline";
import type { Queued, Scan, Verdict } from "./types";

/**
 * Who was let in by a typed code is named by reservation: the box might find others by the text. A
 * pass goes as it is, for the box knows of newer ones. How many were let in with a reason is not
 * left to the box either, which may know the party as missing or as in.
 */
export function toQueue(scan: Scan, verdict: Verdict, reached: boolean): Queued {
  const { admitted } = verdict;
  const shown = verdict.overrode ?? verdict.result; // what staff knew when they set it aside
  const guestId = verdict.reservation?.id ?? null;
  const queued: Queued = { ...scan, shown, guestId, admitted, reached };
  if (admitted <= 0 || guestId === null) return queued;
  if (scan.override) queued.arrivals = admitted;
  if (scan.code !== undefined && isTyped(scan.code)) queued.reservationId = guestId;
  return queued;
}

/** As a scan was taken back of which the box has not heard: it counts nobody, and is written down. */
export function takenBack(queued: Queued, reason: string): Queued {
  const { override: _override, arrivals: _arrivals, ...scan } = queued;
  return { ...scan, shown: "undone", admitted: 0, reason };
}
