/** Tonight's guest list, with search and filters. */
import { matches } from "../shared/text_folding";
import { type Evening, Refused } from "./box";
import { byId, showText } from "./dom";
import { GuestRows, holds } from "./guest_rows";
import { type GuestActions, GuestSheet } from "./guest_sheet";
import type { DoorState } from "./door_state";
import type { Guest, Me } from "./types";
import { minutesOfEvening } from "./venue_time";
import type { Words } from "./words";

type Filter = "all" | "expected" | "arrived";

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
    if (this.doorState().hasRole("search")) this.query.focus();
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
    const kinds = { all: everybody, expected: everybody.filter(isExpected),
      arrived: everybody.filter((guest) => guest.arrived > 0) };
    for (const button of byId("filters").querySelectorAll<HTMLElement>("[data-filter]")) {
      const count = kinds[button.dataset["filter"] as Filter].length;
      const place = button.querySelector("b");
      if (place) place.textContent = String(count);
    }
    const found = kinds[this.filter].filter((guest) => this.fits(guest)).sort(byTime(doorState.me));
    this.rows.show(found);
    byId("guests").hidden = found.length === 0;
    const empty = everybody.length ? "list.none" : "list.empty";
    const why = doorState.hasRole("search") ? empty : "list.role";
    const isSure = found.length === 0 && this.asking === 0;
    showText(byId("guests-empty"), isSure ? this.refusal || this.words.say(why) : null);
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

function isExpected(guest: Guest): boolean {
  return holds(guest) && guest.arrived < guest.guests;
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
