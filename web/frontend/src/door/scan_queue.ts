/**
 * What cameras and scanners read, and when it is decided: nobody's verdict takes the place of one
 * that has not been seen yet, and one code that is held up is one scan.
 */
import { isForeign } from "./offline";
import type { VerdictView, Wish } from "./verdict_view";

const OUT_OF_SIGHT_MS = 700; // a code that shakes or glares is missing from single pictures
const SAME_SCAN_MS = 3000; // a USB scanner reads again what it sees; it tells nobody when it is gone

export class ScanQueue {
  private turn: Promise<void> = Promise.resolve();
  private waiting = 0;
  private deciding = false;
  /** Codes in the camera's sight, each with when it began to be missing. */
  private readonly inSight = new Map<string, number | null>();
  /** When what a scanner read was decided; infinity until it is. */
  private readonly scanned = new Map<string, number>();

  /** `isBusy`: somebody has a sheet open, behind which the camera reads nothing. */
  constructor(
    private readonly view: VerdictView,
    private readonly isBusy: () => boolean,
    private readonly decide: (wish: Wish) => Promise<void>,
  ) {}

  /** Decide this when those before it have been seen; done when its own verdict shows. */
  add(wish: Wish): Promise<void> {
    this.wait(1);
    this.turn = this.turn
      .then(() => this.view.free(wish.code !== undefined && isForeign(wish.code)))
      .then(async () => {
        this.wait(-1);
        this.deciding = true;
        await this.decide(wish);
        this.deciding = false;
      });
    return this.turn;
  }

  /**
   * The codes of one picture, the nearest to its middle first: that one counts. While one waits
   * nothing more is taken: whoever is third still stands there, and is read again. A code is
   * decided once for as long as it is not out of sight.
   */
  see(codes: readonly string[]): void {
    this.track(codes);
    const [code] = codes;
    if (code === undefined || this.inSight.has(code)) return;
    if (this.deciding || this.waiting > 0 || this.view.isAsking || this.isBusy()) return;
    if (this.view.isFresh && isForeign(code)) return;
    const isSeen = () => void this.inSight.set(code, null);
    isSeen();
    void this.add({ code }).then(isSeen); // what it did while it waited was before its verdict
  }

  /** What a USB scanner read. */
  hear(code: string): void {
    if (performance.now() - (this.scanned.get(code) ?? -Infinity) < SAME_SCAN_MS) return;
    this.scanned.set(code, Infinity);
    void this.add({ code }).then(() => this.scanned.set(code, performance.now()));
  }

  private track(codes: readonly string[]): void {
    const now = performance.now();
    for (const [code, missing] of this.inSight) {
      if (codes.includes(code)) this.inSight.set(code, null);
      else if (missing === null) this.inSight.set(code, now);
      else if (now - missing > OUT_OF_SIGHT_MS) this.inSight.delete(code);
    }
  }

  private wait(more: number): void {
    this.waiting += more;
    this.view.wait(this.waiting);
  }
}
