/** Calls to the box, with what may go wrong told apart: out of reach, refused, not ours any more. */
import type { Conflict, Guest, Me, Queued, Scan, SignedSnapshot, Totals, Verdict } from "./types";

/** No answer in time, or none that the box would give: the phone decides by itself. */
export class OutOfReach extends Error {}
/** This terminal is not paired, or not any more: `revoked` when somebody took its access away. */
export class NotPaired extends Error {
  constructor(readonly revoked: boolean) {
    super();
  }
}
/** The box refused; `message` is its sentence, `code` as in interface, section 7. */
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
const OTHERWISE_MS = 10_000;

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

  me(within = OTHERWISE_MS): Promise<Me> {
    return this.call("GET", "/me", undefined, within);
  }

  /**
   * The list as it is now: `held` itself while the box says that nothing changed. The browser's
   * own cache is left out of it, for nothing there goes when the terminal is revoked.
   */
  async snapshot(held: SignedSnapshot | null): Promise<SignedSnapshot> {
    const headers = held?.etag ? { "If-None-Match": held.etag } : undefined;
    const response = await this.reach("GET", "/snapshot", undefined, OTHERWISE_MS, headers);
    if (held && response.status === 304) return held;
    const signed = await this.understand<SignedSnapshot>(response);
    return { ...signed, etag: response.headers.get("ETag") };
  }

  acknowledge(conflictId: string): Promise<unknown> {
    return this.call("POST", `/conflicts/${encodeURIComponent(conflictId)}/acknowledge`, {});
  }

  evening(query = ""): Promise<Evening> {
    return this.call("GET", `/evening${query ? `?q=${encodeURIComponent(query)}` : ""}`);
  }

  decide(scan: Scan): Promise<Verdict> {
    const path = scan.reservationId === undefined ? "/scans" : "/check-ins";
    return this.call("POST", path, scan, DECISION_MS);
  }

  undo(scanId: string, reason?: string): Promise<Verdict> {
    const path = `/scans/${encodeURIComponent(scanId)}/undo`;
    return this.call("POST", path, reason === undefined ? {} : { reason });
  }

  /** The latest check-in of a party of which `arrived` were seen to be in. */
  undoLatest(reservationId: string, arrived: number, reason: string): Promise<Verdict> {
    const path = `/check-ins/${encodeURIComponent(reservationId)}/undo`;
    return this.call("POST", path, { arrived, reason });
  }

  async sync(queued: readonly Queued[], now: number): Promise<Synced[]> {
    const scans = queued.map(({ guestId: _g, admitted: _a, reached: _r, undone, reason, ...scan }) =>
      reason === undefined || undone ? scan : { ...scan, reason });
    const body = { sentAt: new Date(now).toISOString(), scans };
    const { results } = await this.call<{ results: Synced[] }>("POST", "/sync", body, 20_000);
    return results;
  }

  private async call<T>(
    method: string, path: string, body?: unknown, within = OTHERWISE_MS,
  ): Promise<T> {
    return this.understand<T>(await this.reach(method, path, body, within));
  }

  private async understand<T>(response: Response): Promise<T> {
    const answer = await response.json().catch(() => null);
    if (response.status === 401) throw new NotPaired(answer?.code === "KEY_REVOKED");
    // A gateway's or a broken box's answer decides nothing; 503 says itself that it could not.
    if (response.status >= 500 || answer === null) throw new OutOfReach();
    if (!response.ok) throw new Refused(answer.code ?? "", sentence(answer, this.language()));
    return answer as T;
  }

  private async reach(
    method: string, path: string, body: unknown, within: number, headers: HeadersInit = {},
  ): Promise<Response> {
    try {
      return await fetch(this.base + path, {
        method,
        cache: "no-store",
        credentials: "same-origin",
        redirect: "error",
        signal: deadline(within),
        ...(body === undefined
          ? { headers }
          : { body: JSON.stringify(body), headers: { "Content-Type": "application/json" } }),
      });
    } catch {
      throw new OutOfReach();
    }
  }
}

function deadline(within: number): AbortSignal {
  const controller = new AbortController();
  setTimeout(() => controller.abort(), within);
  return controller.signal;
}

/** The box's own words for a refusal: French, or English beside it (interface, section 7). */
function sentence(answer: Refusal, language: string): string {
  return (language === "fr" ? answer.error : answer.error_en) ?? "";
}
