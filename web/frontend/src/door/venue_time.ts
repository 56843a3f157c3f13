/**
 * The venue's local time, with the same rules as in appliance/venue/model.py. It uses the UTC
 * offset from the box, because a phone's time zone data may be outdated.
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

function addDays(date: string, days: number): string {
  return new Date(Date.parse(`${date}T00:00:00Z`) + days * DAY * MINUTE).toISOString().slice(0, 10);
}

/** Return the date of the current evening. Before `eveningEndsAt`, it is yesterday's date. */
export function tonight(now: number, me: Me): string {
  const { date, minutes } = wall(now, me);
  return minutes < minutesOf(me.venue.eveningEndsAt) ? addDays(date, -1) : date;
}

/**
 * Return the minutes from the start of the evening's date to `clock`. For a time after midnight,
 * the result is 1440 or more.
 */
export function minutesOfEvening(clock: string, me: Me): number {
  const minutes = minutesOf(clock);
  return minutes < minutesOf(me.venue.eveningEndsAt) ? minutes + DAY : minutes;
}

/** Return the date on which the guest's slot starts. After midnight, the evening's next day. */
export function startDate({ date, slot }: { date: string; slot: string | null }, me: Me): string {
  return slot !== null && minutesOfEvening(slot, me) >= DAY ? addDays(date, 1) : date;
}

/** Whether the guest's slot starts more than `earlyMinutes` minutes from now. */
export function isTooEarly(
  now: number, guest: { slot: string | null }, me: Me, earlyMinutes: number,
): boolean {
  if (guest.slot === null) return false;
  return minutesOfEvening(guest.slot, me) - minutesOfEvening(clock(now, me), me) > earlyMinutes;
}

/** Return an instant in the venue's local time, such as `21:04`. */
export function clockOf(at: string, me: Me): string {
  return clock(Date.parse(at), me);
}

function clock(at: number, me: Me): string {
  const { minutes } = wall(at, me);
  const two = (n: number) => String(n).padStart(2, "0");
  return `${two(Math.floor(minutes / 60))}:${two(minutes % 60)}`;
}
