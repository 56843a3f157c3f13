/** Calls to the box. They throw BoxUnreachable, Refused or NotPaired. */
import type {
  Conflict, FreeTable, Guest, Me, Queued, Scan, SignedSnapshot, Totals, Verdict,
} from "./types";

/**
 * The box did not respond in time, or the response was a server error (5xx) or not JSON. The phone
 * then decides scans offline.
 */
export class BoxUnreachable extends Error {}
/** This phone is not paired. If `revoked` is true, staff have revoked its token. */
export class NotPaired extends Error {
  constructor(readonly revoked: boolean) {
    super();
  }
}
/** The box refused the request with this `message` and `code` (interface, section 7). */
export class Refused extends Error {
  constructor(readonly code: string, message: string) {
    super(message);
  }
}

interface Refusal {
  error?: string;
  error_en?: string;
  code?: string;
}

const DECISION_MS = 2000;
const DEFAULT_MS = 10_000;

export interface Evening {
  date: string;
  totals: Totals;
  items: Guest[];
  conflicts: Conflict[];
}

export type Synced = Verdict & { conflict: Conflict | null };

export class Box {
  constructor(readonly base: string, private readonly language: () => string) {}

  pair(code: string, name: string): Promise<Me> {
    const language = this.language();
    const body = { code, language, cookie: true, ...(name ? { name } : {}) };
    return this.call("POST", "/pair", body);
  }

  unpair(): Promise<unknown> {
    return this.call("POST", "/unpair", {});
  }

  me(timeout = DEFAULT_MS): Promise<Me> {
    return this.call("GET", "/me", undefined, timeout);
  }

  /**
   * Fetch the snapshot. Return `current` if it has not changed (304). Bypasses the browser's HTTP
   * cache, which would keep guest data after the terminal is revoked.
   */
  async snapshot(current: SignedSnapshot | null): Promise<SignedSnapshot> {
    const headers = current?.etag ? { "If-None-Match": current.etag } : undefined;
    const response = await this.request("GET", "/snapshot", undefined, DEFAULT_MS, headers);
    if (current && response.status === 304) return current;
    const signed = await this.parseResponse<SignedSnapshot>(response);
    return { ...signed, etag: response.headers.get("ETag") };
  }

  /** With `correct`, the box also lowers the number of people who arrived to those booked. */
  acknowledge(conflictId: string, correct = false): Promise<unknown> {
    const path = `/conflicts/${encodeURIComponent(conflictId)}/acknowledge`;
    return this.call("POST", path, correct ? { correct } : {});
  }

  /** List the free tables for a party of walk-ins, best first. */
  async tables(guests: number): Promise<FreeTable[]> {
    return (await this.call<{ items: FreeTable[] }>("GET", `/tables?guests=${guests}`)).items;
  }

  /** Report that a party has left or did not come, or take that back. */
  async report(guestId: string, action: "left" | "no-show" | "take-back"): Promise<Guest> {
    const path = `/reservations/${encodeURIComponent(guestId)}/${action}`;
    return (await this.call<{ reservation: Guest }>("POST", path, {})).reservation;
  }

  evening(query = ""): Promise<Evening> {
    return this.call("GET", `/evening${query ? `?q=${encodeURIComponent(query)}` : ""}`);
  }

  decide(scan: Scan): Promise<Verdict> {
    const known = scan.reservationId === undefined ? "/scans" : "/check-ins";
    const path = scan.walkIn ? "/walk-ins" : known;
    return this.call("POST", path, scan, DECISION_MS);
  }

  undo(scanId: string, reason?: string): Promise<Verdict> {
    const path = `/scans/${encodeURIComponent(scanId)}/undo`;
    return this.call("POST", path, reason === undefined ? {} : { reason }, DECISION_MS);
  }

  /**
   * Undo the latest check-in of a party. The box refuses unless exactly `arrived` guests are
   * checked in.
   */
  undoLatest(reservationId: string, arrived: number, reason: string): Promise<Verdict> {
    const path = `/check-ins/${encodeURIComponent(reservationId)}/undo`;
    return this.call("POST", path, { arrived, reason }, DECISION_MS);
  }

  async sync(queued: readonly Queued[], now: number): Promise<Synced[]> {
    const scans = queued.map(
      ({ guestId: _g, admitted: _a, moved: _m, reached: _r, undone, reason, ...scan }) =>
        reason === undefined || undone ? scan : { ...scan, reason },
    );
    const body = { sentAt: new Date(now).toISOString(), scans };
    const { results } = await this.call<{ results: Synced[] }>("POST", "/sync", body, 20_000);
    return results;
  }

  private async call<T>(
    method: string, path: string, body?: unknown, timeout = DEFAULT_MS,
  ): Promise<T> {
    return this.parseResponse<T>(await this.request(method, path, body, timeout));
  }

  private async parseResponse<T>(response: Response): Promise<T> {
    const answer = await response.json().catch(() => null);
    if (response.status === 401) throw new NotPaired(answer?.code === "KEY_REVOKED");
    // A 5xx response is not a decision, whether a proxy or the box sent it.
    if (response.status >= 500 || answer === null) throw new BoxUnreachable();
    if (!response.ok) throw new Refused(answer.code ?? "", refusalText(answer, this.language()));
    return answer as T;
  }

  private async request(
    method: string, path: string, body: unknown, timeout: number, headers: HeadersInit = {},
  ): Promise<Response> {
    try {
      return await fetch(this.base + path, {
        method,
        cache: "no-store",
        credentials: "same-origin",
        redirect: "error",
        signal: deadline(timeout),
        ...(body === undefined
          ? { headers }
          : { body: JSON.stringify(body), headers: { "Content-Type": "application/json" } }),
      });
    } catch {
      throw new BoxUnreachable();
    }
  }
}

function deadline(timeout: number): AbortSignal {
  const controller = new AbortController();
  setTimeout(() => controller.abort(), timeout);
  return controller.signal;
}

/** Return the box's message for a refusal in French or English (interface, section 7). */
function refusalText(answer: Refusal, language: string): string {
  return (language === "fr" ? answer.error : answer.error_en) ?? "";
}
