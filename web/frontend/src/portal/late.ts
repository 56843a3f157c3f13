// Mark parties that are late by the venue's rule, and show only them if asked to.

const EVERY_MS = 10_000;

export const LATE_CHANGED = "portal:late";

/** Keep the marks and the count of late parties up to date. */
export function followLate(): void {
  const board = document.querySelector<HTMLElement>("[data-late-minutes]");
  if (!board) return;
  // The box's clock counts, not the one of this computer.
  const behind = Number(board.dataset["now"]) - performance.now();
  const mark = (): void => markLate(board, behind + performance.now());
  window.setInterval(mark, EVERY_MS);
  new MutationObserver(mark).observe(board, { childList: true, subtree: true });
  const filter = lateFilter();
  filter?.addEventListener("click", () => {
    filter.setAttribute("aria-pressed", String(!showsLateOnly()));
    document.dispatchEvent(new Event(LATE_CHANGED));
  });
  mark();
}

/** Whether the board shows late parties only. */
export function showsLateOnly(): boolean {
  return lateFilter()?.getAttribute("aria-pressed") === "true";
}

function lateFilter(): HTMLElement | null {
  return document.querySelector<HTMLElement>("[data-late-filter]");
}

function markLate(board: HTMLElement, now: number): void {
  const kept = Number(board.dataset["lateMinutes"]);
  const late = new Set<string | undefined>(); // a group has a chip at each of its tables
  for (const chip of document.querySelectorAll<HTMLElement>("[data-due]")) {
    const minutes = Math.floor((now - Number(chip.dataset["due"])) / 60_000);
    const isLate = minutes >= kept;
    if (isLate) late.add(chip.dataset["reservation"]);
    chip.classList.toggle("overdue", isLate);
    const label = chip.querySelector<HTMLElement>(".late-by");
    const text = chip.querySelector<HTMLElement>("[data-late-by]");
    const words = (board.dataset["minutes"] ?? "…").replace("…", String(minutes));
    if (label && label.hidden === isLate) label.hidden = !isLate;
    if (text && isLate && text.textContent !== words) text.textContent = words;
  }
  const filter = lateFilter();
  const number = filter?.querySelector("b");
  if (!filter || !number || number.textContent === String(late.size)) return;
  number.textContent = String(late.size);
  filter.hidden = late.size === 0;
  if (late.size === 0) filter.setAttribute("aria-pressed", "false");
  document.dispatchEvent(new Event(LATE_CHANGED));
}
