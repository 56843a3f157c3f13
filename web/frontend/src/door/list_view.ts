/** Tonight's guest list, with search and filters. */
import { matches } from "../shared/text_folding";
import { type Evening, Refused } from "./box";
import { byId, showText } from "./dom";
import { GuestRows, holds } from "./guest_rows";
import { type GuestActions, GuestSheet } from "./guest_sheet";
import type { DoorState } from "./door_state";
import type { Guest, Me } from "./types";
import { clockOf, minutesOfEvening } from "./venue_time";
import type { Words } from "./words";

type Filter = "all" | "expected" | "arrived" | "late";

const ASK_MS = 200;

export class ListView {
  private readonly sheet = byId<HTMLDialogElement>("list-sheet");
  private readonly guestSheet: GuestSheet;
  private readonly query = byId<HTMLInputElement>("query");
  private readonly rows: GuestRows;
  private filter: Filter = "all";
  private foundByBox = new Set<string>();
  private refusal = "";
  private asking = 0; // the timer of the request to the box, 0 once the box has answered

  constructor(
    private readonly words: Words,
    private readonly doorState: () => DoorState,
    actions: GuestActions,
  ) {
    this.guestSheet = new GuestSheet(words, actions);
    this.rows = new GuestRows(byId("guests"), words, (id) => this.pick(id));
    byId("open-list").addEventListener("click", () => this.open());
    this.query.addEventListener("input", () => this.search());
    byId("filters").addEventListener("click", (event) => {
      const chosen = (event.target as Element).closest<HTMLElement>("[data-filter]");
      if (chosen) this.choose(chosen.dataset["filter"] as Filter);
    });
  }

  /** Redraw the list if it is open. */
  refresh(): void {
    this.guestSheet.renew((id) => this.doorState().guests.get(id));
    if (this.sheet.open) this.draw();
    else this.rows.show([]); // leave no guest data in the page after unpairing
  }

  private open(): void {
    this.query.value = "";
    this.sheet.showModal();
    this.search();
    this.query.focus();
  }

  private choose(filter: Filter): void {
    this.filter = filter;
    for (const button of byId("filters").querySelectorAll<HTMLElement>("[data-filter]")) {
      button.setAttribute("aria-pressed", String(button.dataset["filter"] === filter));
    }
    this.draw();
  }

  /**
   * First search the list on this phone. Then ask the box, which also searches family names and
   * phone numbers.
   */
  private search(): void {
    this.foundByBox.clear();
    this.refusal = "";
    clearTimeout(this.asking);
    const query = this.query.value.trim();
    const isAsked = query !== "" && this.doorState().isOnline;
    this.asking = isAsked ? setTimeout(() => void this.ask(query), ASK_MS) : 0;
    this.draw();
  }

  private async ask(query: string): Promise<void> {
    const answer = await this.doorState().box.evening(query).catch((error: unknown) => error);
    if (this.query.value.trim() !== query) return;
    this.asking = 0;
    this.refusal = answer instanceof Refused ? answer.message : "";
    const items = answer instanceof Error ? [] : (answer as Evening).items;
    this.foundByBox = new Set(items.map((guest) => guest.id));
    this.draw();
  }

  private draw(): void {
    const doorState = this.doorState();
    const everybody = doorState.hasRole("search") ? [...doorState.guests.values()] : [];
    const late = everybody.filter((guest) => isLate(guest, doorState.now()));
    const kinds = { all: everybody, expected: everybody.filter(isExpected),
      arrived: everybody.filter((guest) => guest.arrived > 0), late };
    for (const button of byId("filters").querySelectorAll<HTMLElement>("[data-filter]")) {
      const kind = button.dataset["filter"] as Filter;
      const count = kinds[kind].length;
      if (kind === "late") button.hidden = count === 0 && this.filter !== "late";
      const place = button.querySelector("b");
      if (place) place.textContent = String(count);
    }
    const order = this.filter === "late" ? byLateness : byTime(doorState.me);
    const found = kinds[this.filter].filter((guest) => this.fits(guest)).sort(order);
    this.rows.show(found, (guest) => this.lateText(guest));
    byId("guests").hidden = found.length === 0;
    const why = everybody.length ? "list.none" : "list.empty";
    const isSure = found.length === 0 && this.asking === 0;
    showText(byId("guests-empty"), isSure ? this.refusal || this.words.say(why) : null);
  }

  /** Return since when an awaited party is late, or "". */
  private lateText(guest: Guest): string {
    const { me } = this.doorState();
    const isShown = me && guest.lateFrom && isLate(guest, this.doorState().now());
    return isShown ? this.words.say("late.since", { time: clockOf(guest.lateFrom ?? "", me) }) : "";
  }

  private fits(guest: Guest): boolean {
    if (this.foundByBox.has(guest.id)) return true;
    const { accessCode: code, table } = guest;
    const name = guest.searchedName ?? guest.customerFirstName;
    const codes = code === null ? [] : [code, code.slice(4), code.replace("-", "")];
    return matches(this.query.value, `${name ?? ""} ${table.name}`, [...codes, table.number ?? null]);
  }

  private pick(id: string): void {
    const guest = this.doorState().guests.get(id);
    if (guest) this.guestSheet.open(guest);
  }
}

/** Whether a party that is late by the venue's rule has not come yet. */
function isLate(guest: Guest, now: number): boolean {
  const { lateFrom, arrived, gone } = guest;
  return Boolean(lateFrom) && arrived === 0 && holds(guest) && !gone &&
    Date.parse(lateFrom ?? "") <= now;
}

function byLateness(first: Guest, second: Guest): number {
  return Date.parse(first.lateFrom ?? "") - Date.parse(second.lateFrom ?? "");
}

function isExpected(guest: Guest): boolean {
  return holds(guest) && guest.status !== "completed" && guest.arrived < guest.guests;
}

/**
 * Return a function that compares guests by slot and then by table name. Guests without a slot come
 * first. "Table 2" comes before "Table 10".
 */
function byTime(me: Me | null): (first: Guest, second: Guest) => number {
  const startOf = ({ slot }: Guest) => (me && slot !== null ? minutesOfEvening(slot, me) : -1);
  return (first, second) =>
    startOf(first) - startOf(second) ||
    first.table.name.localeCompare(second.table.name, undefined, { numeric: true });
}
