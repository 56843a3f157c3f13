/**
 * The queue between camera or scanner and decision. A verdict is not replaced before it was on
 * screen long enough, and a code that is held up to the camera counts as one scan.
 */
import { isForeign } from "./offline";
import type { ScanRequest } from "./types";
import type { VerdictView } from "./verdict_view";

const OUT_OF_SIGHT_MS = 700; // a code that shakes or glares is not read in every frame
const SAME_SCAN_MS = 3000; // a USB scanner repeats a code and does not report when it is gone

export class ScanQueue {
  private lastScan: Promise<void> = Promise.resolve();
  private waiting = 0;
  private deciding = false;
  /** Codes in the camera's view. The value is when the code went missing; null if visible. */
  private readonly inSight = new Map<string, number | null>();
  /** When each scanned code was decided; Infinity until then. */
  private readonly scanned = new Map<string, number>();

  /** `isSheetOpen`: whether a sheet covers the camera, whose codes are then ignored. */
  constructor(
    private readonly view: VerdictView,
    private readonly isSheetOpen: () => boolean,
    private readonly decide: (request: ScanRequest) => Promise<void>,
  ) {}

  /** Decide after the previous verdicts were seen. Resolves when the verdict is shown. */
  add(request: ScanRequest): Promise<void> {
    this.changeWaiting(1);
    this.lastScan = this.lastScan
      .then(() => this.view.whenFree(request.code !== undefined && isForeign(request.code)))
      .then(async () => {
        this.changeWaiting(-1);
        this.deciding = true;
        await this.decide(request);
        this.deciding = false;
      });
    return this.lastScan;
  }

  /**
   * Take the codes of one camera frame, the nearest to its centre first; only the first counts.
   * While a scan is waiting, codes are ignored: the camera will see them again. A code is decided
   * once until it leaves the camera's view.
   */
  addCameraCodes(codes: readonly string[]): void {
    this.track(codes);
    const [code] = codes;
    if (code === undefined || this.inSight.has(code)) return;
    if (this.deciding || this.waiting > 0) return;
    if (this.view.isEnteringReason || this.isSheetOpen()) return;
    if (this.view.isFresh && isForeign(code)) return;
    const isSeen = () => void this.inSight.set(code, null);
    isSeen();
    void this.add({ code }).then(isSeen); // gaps while it waited do not count
  }

  /** Take a code from a USB scanner. */
  addScannerCode(code: string): void {
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

  private changeWaiting(by: number): void {
    this.waiting += by;
    this.view.showWaiting(this.waiting);
  }
}
