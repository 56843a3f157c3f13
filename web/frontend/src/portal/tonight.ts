// The evening board stays true while somebody looks at it: the box tells which rows changed, and
// they are fetched and put in their places. Nothing is asked for while nothing changes.

import { fold } from "../_fold";
import { refreshDrawer } from "./drawer";

const GATHER_MS = 40;
const ROWS_MAX = 40;

interface RowChange {
  reservation?: string;
  table?: string;
  version?: number;
}

export function followBoard(): void {
  const board = document.querySelector<HTMLTableElement>("[data-board]");
  if (board) new LiveBoard(board).follow();
  searchBoard();
  reachByKey();
  submitOnChoice();
  document.addEventListener("click", (event) => {
    if ((event.target as Element).closest("[data-print]")) window.print();
  });
}

class LiveBoard {
  private readonly base: string;
  private readonly date: string;
  private readonly waiting = new Set<string>();
  private timer: number | undefined;

  constructor(private readonly board: HTMLTableElement) {
    this.base = board.dataset["board"] ?? "";
    this.date = board.dataset["date"] ?? "";
  }

  follow(): void {
    const query = new URLSearchParams({
      date: this.date,
      after: this.board.dataset["position"] ?? "",
    });
    const source = new EventSource(`${this.base}/events?${query}`);
    const notice = document.querySelector<HTMLElement>("[data-live]");
    source.addEventListener("open", () => notice?.setAttribute("hidden", ""));
    source.addEventListener("error", () => notice?.removeAttribute("hidden"));
    source.addEventListener("row", (event) => {
      const change = JSON.parse((event as MessageEvent<string>).data) as RowChange;
      if (change.reservation) this.noteRowsOf(change.reservation);
      if (change.table) this.note(change.table);
      if (change.reservation) refreshDrawer(change.reservation, change.version ?? 0);
    });
    source.addEventListener("reset", () => window.location.reload());
    source.addEventListener("revoked", () => window.location.reload());
    window.addEventListener("pagehide", () => source.close());
  }

  /** The row where the party sat until now. */
  private noteRowsOf(reservation: string): void {
    const chips = this.board.querySelectorAll(`[data-reservation="${CSS.escape(reservation)}"]`);
    for (const chip of chips) this.note(chip.closest("tr")?.dataset["table"] ?? "");
  }

  private note(table: string): void {
    if (table) this.waiting.add(table);
    this.timer ??= window.setTimeout(() => void this.refresh(), GATHER_MS);
  }

  private async refresh(): Promise<void> {
    this.timer = undefined;
    const tables = [...this.waiting];
    this.waiting.clear();
    if (tables.length > ROWS_MAX) {
      window.location.reload();
      return;
    }
    const query = new URLSearchParams({ date: this.date, tables: tables.join(",") });
    const answer = await fetch(`${this.base}/rows?${query}`, { headers: { "HX-Request": "true" } });
    if (!answer.ok) return;
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    for (const part of fresh.querySelectorAll<HTMLElement>("#totals, #waiting, tr[id]")) {
      this.put(part);
    }
    markFound();
  }

  private put(part: HTMLElement): void {
    const present = document.getElementById(part.id);
    if (!present || present.outerHTML === part.outerHTML) return;
    const focused = present.contains(document.activeElement)
      ? (document.activeElement as HTMLElement).dataset["reservation"]
      : undefined;
    present.replaceWith(part);
    part.classList.add("fresh");
    if (focused) part.querySelector<HTMLElement>(`[data-reservation="${focused}"]`)?.focus();
  }
}

/** Marks who fits what is typed, and dims the others. */
function searchBoard(): void {
  const field = document.querySelector<HTMLInputElement>("[data-board-search]");
  field?.addEventListener("input", () => {
    markFound();
    document.querySelector(".guest.found")?.scrollIntoView({ block: "nearest" });
  });
  field?.addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    document.querySelector<HTMLElement>(".guest.found")?.click();
  });
}

function markFound(): void {
  const field = document.querySelector<HTMLInputElement>("[data-board-search]");
  const wanted = fold(field?.value.trim() ?? "");
  let found = 0;
  for (const chip of document.querySelectorAll<HTMLElement>("[data-search]")) {
    const fits = wanted !== "" && fold(chip.dataset["search"] ?? "").includes(wanted);
    chip.classList.toggle("found", fits);
    chip.classList.toggle("dimmed", wanted !== "" && !fits);
    if (fits) found += 1;
  }
  const none = document.querySelector<HTMLElement>("[data-search-none]");
  if (!none) return;
  none.hidden = wanted === "" || found > 0;
  none.textContent = none.hidden ? "" : (none.dataset["searchNone"] ?? "");
}

/** `data-key="ArrowLeft"`: that key follows the link or enters the field, unless one is typing. */
function reachByKey(): void {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const at = event.target as Element;
    if (at.closest("input, select, textarea, [contenteditable]")) return;
    const target = document.querySelector<HTMLElement>(`[data-key="${CSS.escape(event.key)}"]`);
    if (!target) return;
    if (event.key.startsWith("Arrow") && scrollsSideways(at)) return;
    event.preventDefault();
    if (target instanceof HTMLInputElement) target.focus();
    else target.click();
  });
}

/** A board that is wider than its frame: the arrows move it. */
function scrollsSideways(at: Element): boolean {
  const frame = at.closest(".board-frame, .scroller");
  return frame !== null && frame.scrollWidth > frame.clientWidth;
}

/** With a script, a chosen date needs no button. */
function submitOnChoice(): void {
  for (const button of document.querySelectorAll<HTMLElement>("[data-without-script]")) {
    button.hidden = true;
    const form = button.closest("form");
    if (!form?.matches(".board-tools")) continue;
    const date = form.querySelector<HTMLInputElement>("input[type=date]");
    // Typing passes through dates that nobody means: those count with Enter, or when it is left.
    let isTyping = false;
    date?.addEventListener("keydown", () => (isTyping = true));
    date?.addEventListener("pointerdown", () => (isTyping = false));
    date?.addEventListener("change", () => isTyping || form.submit());
    date?.addEventListener("blur", () => {
      if (isTyping && date.value && date.value !== date.defaultValue) form.submit();
    });
  }
}
