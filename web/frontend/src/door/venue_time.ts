/** The venue's own time on a phone that may stand in another zone (appliance/model/evening.py). */
import type { Me } from "./types";

const MINUTE = 60_000;
const DAY = 24 * 60;

interface Wall {
  date: string;
  minutes: number;
}

function wall(at: number, timeZone: string): Wall {
  const parts = new Intl.DateTimeFormat("en-CA", {
    timeZone, hourCycle: "h23", year: "numeric", month: "2-digit", day: "2-digit",
    hour: "2-digit", minute: "2-digit",
  }).formatToParts(at);
  const part = (type: string) => parts.find((one) => one.type === type)?.value ?? "00";
  return {
    date: `${part("year")}-${part("month")}-${part("day")}`,
    minutes: Number(part("hour")) * 60 + Number(part("minute")),
  };
}

function minutesOf(clock: string): number {
  return Number(clock.slice(0, 2)) * 60 + Number(clock.slice(3, 5));
}

function dayBefore(date: string): string {
  return new Date(Date.parse(`${date}T00:00:00Z`) - DAY * MINUTE).toISOString().slice(0, 10);
}

/** The evening that is on: before the hour at which evenings end it is yesterday's. */
export function tonight(now: number, venue: Me["venue"]): string {
  const { date, minutes } = wall(now, venue.timeZone);
  return minutes < minutesOf(venue.eveningEndsAt) ? dayBefore(date) : date;
}

/** Whether the guest's slot of tonight is more than `earlyMinutes` ahead. */
export function isTooEarly(
  now: number, guest: { slot: string | null }, venue: Me["venue"], earlyMinutes: number,
): boolean {
  if (guest.slot === null) return false;
  const ends = minutesOf(venue.eveningEndsAt);
  const since = (minutes: number) => (minutes < ends ? minutes + DAY : minutes);
  const passed = since(wall(now, venue.timeZone).minutes);
  return since(minutesOf(guest.slot)) - passed > earlyMinutes;
}

/** `21:04` as the venue's clock showed it. */
export function clockOf(at: string, timeZone: string): string {
  const { minutes } = wall(Date.parse(at), timeZone);
  const two = (n: number) => String(n).padStart(2, "0");
  return `${two(Math.floor(minutes / 60))}:${two(minutes % 60)}`;
}
