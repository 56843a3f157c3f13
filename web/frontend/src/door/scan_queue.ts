/**
 * The queue of scanned codes. The next code is decided when the verdict on screen may be replaced.
 * As long as a code is held up to the camera, it counts as one scan.
 */
import { isForeign } from "./offline";
import type { ScanRequest } from "./types";
import type { VerdictView } from "./verdict_view";

// A code counts as removed if it has not been read for this long. A shorter time would not be
// enough, because a moving or glaring code is not readable in every frame.
const OUT_OF_SIGHT_MS = 700;
// A USB scanner repeats a code that stays in front of it. Ignore repetitions within this time.
const SAME_SCAN_MS = 3000;

export class ScanQueue {
  private lastScan: Promise<void> = Promise.resolve();
  private waiting = 0;
  private deciding = false;
  /** Codes in the camera's view. The value is null, or the time when the code disappeared. */
  private readonly inSight = new Map<string, number | null>();
  /** Codes from USB scanners. The value is the time of the decision, or Infinity until then. */
  private readonly scanned = new Map<string, number>();

  /**
   * `isSheetOpen` returns whether a sheet covers the camera. If so, the camera's codes are
   * ignored.
   */
  constructor(
    private readonly view: VerdictView,
    private readonly isSheetOpen: () => boolean,
    private readonly decide: (request: ScanRequest) => Promise<void>,
  ) {}

  /** Decide `request` after all earlier requests. Resolves when its verdict is shown. */
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
   * Take the codes of one camera frame, sorted by distance from the centre. Only the first code
   * counts. While a scan is waiting, codes are ignored, because the camera will see them again. As
   * long as a code stays in the camera's view, it is decided only once.
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
    // Ignore the time during which the code was out of view while its scan was in the queue.
    void this.add({ code }).then(isSeen);
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
