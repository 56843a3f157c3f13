// Update the evening board live. The box reports which rows changed, and only those are fetched.

import { LiveFeed, type Told } from "../shared/live_feed";
import { containsNumber } from "../shared/phone_numbers";
import { matches } from "../shared/text_folding";
import { refreshDrawer, reopenAfterReload } from "./drawer";
import { followDrag } from "./drag";
import { followNews, showNews } from "./news";
import { followLate, LATE_CHANGED, showsLateOnly } from "./late";
import { whenNothingUnsaved } from "./unsaved_input";
import { ask } from "./waiting";

const BATCH_MS = 40;
const RETRY_MS = 2000;
const MAX_ROWS = 40;

interface RowChange {
  reservation?: string;
  tables?: readonly string[];
  version?: number;
}

export function followBoard(): void {
  const board = document.querySelector<HTMLTableElement>("[data-board]");
  if (board) new LiveBoard(board).follow();
  if (board) scrollToCurrentSlot(board);
  followNews();
  enableSearch();
  followLate();
  followDrag();
  document.addEventListener(LATE_CHANGED, highlightMatches);
  enableShortcuts();
  submitOnDateChoice();
  document.addEventListener("click", (event) => {
    if ((event.target as Element).closest("[data-print]")) window.print();
  });
}

/** On a narrow screen, scroll to the current slot. */
function scrollToCurrentSlot(board: HTMLTableElement): void {
  const present = board.querySelector("thead th[aria-current]")?.getBoundingClientRect();
  const tables = board.querySelector("thead th")?.getBoundingClientRect();
  if (!present || !tables || !board.parentElement) return;
  const isLtr = getComputedStyle(board).direction === "ltr";
  board.parentElement.scrollLeft += isLtr
    ? present.left - tables.right
    : present.right - tables.left;
}

class LiveBoard {
  private readonly base: string;
  private readonly date: string;
  private readonly waiting = new Set<string>();
  private timer: number | undefined;
  private readonly feed: LiveFeed;

  constructor(private readonly board: HTMLTableElement) {
    this.base = board.dataset["board"] ?? "";
    this.date = board.dataset["date"] ?? "";
    const environment = this.base.startsWith("/test/") ? "test" : "live";
    const notice = document.querySelector<HTMLElement>("[data-live]");
    this.feed = new LiveFeed(`${environment}!${this.date}`, board.dataset["position"] ?? "", {
      told: (told) => this.receive(told),
      open: () => notice?.setAttribute("hidden", ""),
      lost: () => {
        notice?.removeAttribute("hidden");
        window.setTimeout(() => void this.reconnect(), RETRY_MS);
      },
    });
  }

  follow(): void {
    this.feed.follow();
  }

  private receive({ kind, data }: Told): void {
    if (kind === "reset") this.reloadPage();
    if (kind === "revoked") window.location.reload();
    if (kind !== "row") return;
    const change = data as RowChange;
    if (change.reservation) this.refreshRowsOf(change.reservation);
    for (const table of change.tables ?? []) this.refreshRow(table);
    if (change.reservation) refreshDrawer(change.reservation, change.version ?? 0);
  }

  /** Follow again. If the session has ended, show the sign-in page. */
  private async reconnect(): Promise<void> {
    const answer = await this.fetchRows([]).catch(() => null);
    if (answer?.status === 401) window.location.reload();
    else this.feed.follow();
  }

  private fetchRows(tables: readonly string[]): Promise<Response> {
    const query = new URLSearchParams({ date: this.date, tables: tables.join(",") });
    return ask(`${this.base}/rows?${query}`, { headers: { "HX-Request": "true" } });
  }

  /** Refresh the rows that still show the reservation. It may have moved to another table. */
  private refreshRowsOf(reservation: string): void {
    const chips = this.board.querySelectorAll(`[data-reservation="${CSS.escape(reservation)}"]`);
    for (const chip of chips) this.refreshRow(chip.closest("tr")?.dataset["table"] ?? "");
  }

  private refreshRow(table: string, after = BATCH_MS): void {
    if (table) this.waiting.add(table);
    this.timer ??= window.setTimeout(() => void this.refresh(), after);
  }

  /** Reload the page as soon as there is no unsaved input. */
  private reloadPage(): void {
    const notice = document.querySelector<HTMLElement>("[data-reads-again]");
    notice?.removeAttribute("hidden");
    whenNothingUnsaved(() => {
      reopenAfterReload();
      window.location.reload();
    });
  }

  private async refresh(): Promise<void> {
    this.timer = undefined;
    const tables = [...this.waiting];
    this.waiting.clear();
    if (tables.length > MAX_ROWS) return this.reloadPage();
    const answer = await this.fetchRows(tables).catch(() => null);
    const text = await answer?.text().catch(() => null);
    if (!answer || answer.status >= 500 || text === null || text === undefined) {
      for (const table of ["", ...tables]) this.refreshRow(table, RETRY_MS);
      return;
    }
    if (!answer.ok) return;
    const fresh = new DOMParser().parseFromString(text, "text/html");
    const parts = fresh.querySelectorAll<HTMLElement>("#totals, #waiting, #news");
    for (const part of parts) this.replacePart(part);
    for (const table of tables) this.replaceRow(`t-${table}`, fresh);
    showNews();
    highlightMatches();
  }

  /** Replace, insert or remove a row. An unbookable table has a row only while it is reserved. */
  private replaceRow(id: string, fresh: Document): void {
    const [row, present] = [fresh.getElementById(id), document.getElementById(id)];
    if (!row) return present?.remove();
    if (present) return this.replacePart(row);
    const { section } = row.dataset;
    const body = [...this.board.tBodies].find((each) => each.dataset["section"] === section);
    const rows = [...(body?.querySelectorAll<HTMLElement>("[data-place]") ?? [])];
    const place = Number(row.dataset["place"]);
    const next = rows.find((other) => Number(other.dataset["place"]) > place);
    body?.insertBefore(row, next ?? null);
    row.classList.add("fresh");
  }

  private replacePart(part: HTMLElement): void {
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

/** Highlight the parties that match the search, and dim the others. */
function enableSearch(): void {
  const field = document.querySelector<HTMLInputElement>("[data-board-search]");
  field?.addEventListener("input", () => {
    highlightMatches();
    document.querySelector(".guest.found")?.scrollIntoView({ block: "nearest" });
  });
  field?.addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    document.querySelector<HTMLElement>(".guest.found")?.click();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !field) return;
    field.value = "";
    highlightMatches();
  });
}

function highlightMatches(): void {
  const field = document.querySelector<HTMLInputElement>("[data-board-search]");
  const wanted = field?.value.trim() ?? "";
  const isLateOnly = showsLateOnly();
  let found = 0;
  for (const chip of document.querySelectorAll<HTMLElement>("[data-search]")) {
    const { search = "", phone = "" } = chip.dataset;
    const fits =
      (wanted !== "" || isLateOnly) &&
      (!isLateOnly || chip.matches(".overdue")) &&
      (containsNumber(phone, wanted) ||
        wanted.split(/\s+/).every((word) => matches(word, search) || containsNumber(phone, word)));
    chip.classList.toggle("found", fits);
    chip.classList.toggle("dimmed", (wanted !== "" || isLateOnly) && !fits);
    if (fits) found += 1;
  }
  const none = document.querySelector<HTMLElement>("[data-search-none]");
  if (!none) return;
  none.hidden = wanted === "" || found > 0;
  none.textContent = none.hidden ? "" : (none.dataset["searchNone"] ?? "");
}

/**
 * Enable keyboard shortcuts. The key in an element's `data-key`, such as "ArrowLeft", focuses the
 * element if it is an input. Otherwise, it clicks the element. Shortcuts do not work while a form
 * field has the focus.
 */
function enableShortcuts(): void {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const at = event.target as Element;
    if (at.closest("input, select, textarea, [contenteditable]")) return;
    const key = CSS.escape(shortcutKey(event));
    const target = document.querySelector<HTMLElement>(`[data-key="${key}"]`);
    if (!target) return;
    if (event.key.startsWith("Arrow") && scrollsSideways(at)) return;
    event.preventDefault();
    if (!(target instanceof HTMLInputElement)) return target.click();
    target.focus();
    if (target.type === "search") target.select(); // what is typed replaces the old search
  });
}

/**
 * Return the key of a shortcut. In layouts without Latin letters, such as the Arabic one, it is the
 * key that has the same place on a US keyboard.
 */
function shortcutKey({ key, code }: KeyboardEvent): string {
  if (/^\p{Script=Latin}$/u.test(key)) return key.toLowerCase();
  if ([...key].length !== 1 || /^[\x20-\x7e]$/.test(key)) return key;
  return code === "Slash" ? "/" : (/^Key([A-Z])$/.exec(code)?.[1]?.toLowerCase() ?? key);
}

/** Whether the board is wider than its frame. If so, the arrow keys scroll the board. */
function scrollsSideways(at: Element): boolean {
  const frame = at.closest(".board-frame, .scroller");
  return frame !== null && frame.scrollWidth > frame.clientWidth;
}

/** Hide the form's button, and submit the form when a date is chosen. */
function submitOnDateChoice(): void {
  for (const button of document.querySelectorAll<HTMLElement>("[data-without-script]")) {
    button.hidden = true;
    const form = button.closest("form");
    if (!form?.matches(".board-tools")) continue;
    const date = form.querySelector<HTMLInputElement>("input[type=date]");
    // While a date is typed, the field fires "change" for incomplete dates too. So wait until Enter
    // is pressed or the field loses the focus.
    let isTyping = false;
    date?.addEventListener("keydown", () => (isTyping = true));
    date?.addEventListener("pointerdown", () => (isTyping = false));
    date?.addEventListener("change", () => isTyping || form.submit());
    date?.addEventListener("blur", () => {
      if (isTyping && date.value && date.value !== date.defaultValue) form.submit();
    });
  }
}
