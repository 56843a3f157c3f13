/**
 * A note of how many guests were admitted without the box. It is a cookie, because a phone short of
 * space deletes what a page has stored, with the scans that wait, but keeps its cookies. Then the
 * app can at least say how many are missing.
 */
const A_MONTH_S = 30 * 24 * 3600;

export class WaitingNote {
  private readonly name: string;

  constructor(environment: string) {
    this.name = `venuebox-door-waiting-${environment}-${location.port}`; // ports share cookies
  }

  /** Return how many were waiting, and how many were missing before and are not acknowledged. */
  read(): { waiting: number; missing: number } {
    const [, value = ""] = document.cookie.match(new RegExp(`(?:^|; )${this.name}=([0-9.]*)`)) ?? [];
    const [waiting = 0, missing = 0] = value.split(".").map(Number);
    return { waiting, missing };
  }

  write(waiting: number, missing: number): void {
    const age = waiting + missing > 0 ? A_MONTH_S : 0;
    document.cookie =
      `${this.name}=${waiting}.${missing}; path=/; max-age=${age}; SameSite=Strict`;
  }
}
