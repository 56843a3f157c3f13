/**
 * The venue's own time (appliance/venue/model.py). The box says how far its wall clock is from
 * UTC: a phone's own zone rules may be years old, and Morocco's have changed since.
 */
import type { Me } from "./types";

const MINUTE = 60_000;
const DAY = 24 * 60;

function wall(at: number, me: Me): { date: string; minutes: number } {
  const shown = new Date(at + me.utcOffsetMinutes * MINUTE);
  return {
    date: shown.toISOString().slice(0, 10),
    minutes: shown.getUTCHours() * 60 + shown.getUTCMinutes(),
  };
}

function minutesOf(clock: string): number {
  return Number(clock.slice(0, 2)) * 60 + Number(clock.slice(3, 5));
}

function dayBefore(date: string): string {
  return new Date(Date.parse(`${date}T00:00:00Z`) - DAY * MINUTE).toISOString().slice(0, 10);
}

/** The evening that is on: before the hour at which evenings end it is yesterday's. */
export function tonight(now: number, me: Me): string {
  const { date, minutes } = wall(now, me);
  return minutes < minutesOf(me.venue.eveningEndsAt) ? dayBefore(date) : date;
}

/** Minutes since the midnight before the evening: slots after the next one come last. */
export function minutesOfEvening(clock: string, me: Me): number {
  const minutes = minutesOf(clock);
  return minutes < minutesOf(me.venue.eveningEndsAt) ? minutes + DAY : minutes;
}

/** Whether the guest's slot of tonight is more than `earlyMinutes` ahead. */
export function isTooEarly(
  now: number, guest: { slot: string | null }, me: Me, earlyMinutes: number,
): boolean {
  if (guest.slot === null) return false;
  return minutesOfEvening(guest.slot, me) - minutesOfEvening(clock(now, me), me) > earlyMinutes;
}

/** `21:04` as the venue's clock showed it. */
export function clockOf(at: string, me: Me): string {
  return clock(Date.parse(at), me);
}

function clock(at: number, me: Me): string {
  const { minutes } = wall(at, me);
  const two = (n: number) => String(n).padStart(2, "0");
  return `${two(Math.floor(minutes / 60))}:${two(minutes % 60)}`;
}
