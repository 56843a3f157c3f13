/** The second half of a double tap is not meant for what has come up under the finger. */

const WITHIN_MS = 350;
const NEAR_PX = 30;

/** Taps on `place` count when they, or the tap before at the same spot, came after `shownAt`. */
export function ignoreSecondTaps(place: HTMLElement, shownAt: () => number): void {
  let before: MouseEvent | null = null;
  addEventListener("click", (event) => {
    const first = before;
    before = event;
    if (!first || event.detail === 0 || !place.contains(event.target as Node)) return; // 0: a key
    const near = Math.hypot(event.clientX - first.clientX, event.clientY - first.clientY) < NEAR_PX;
    const soon = event.timeStamp - first.timeStamp < WITHIN_MS;
    if (near && soon && first.timeStamp < shownAt()) {
      event.preventDefault();
      event.stopPropagation();
    }
  }, { capture: true });
}
