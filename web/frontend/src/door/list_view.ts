/** Tonight's guests: who is expected and who is in, searched and filtered. */
import { type Evening, Refused } from "./box";
import { part, show } from "./dom";
import { GuestRows, holds } from "./guest_rows";
import { type GuestDeeds, GuestSheet } from "./guest_sheet";
import type { Keeper } from "./keeper";
import { fold } from "./offline";
import type { Guest, Me } from "./types";
import { minutesOfEvening } from "./venue_time";
import type { Words } from "./words";

type Filter = "all" | "expected" | "arrived";

const ASK_MS = 200;

export class ListView {
  private readonly sheet = part<HTMLDialogElement>("list-sheet");
  private readonly guestSheet: GuestSheet;
  private readonly query = part<HTMLInputElement>("query");
  private readonly rows: GuestRows;
  private filter: Filter = "all";
  private foundByBox = new Set<string>();
  private refusal = "";
  private asking = 0;

  constructor(
    private readonly words: Words,
    private readonly keeper: () => Keeper,
    deeds: GuestDeeds,
  ) {
    this.guestSheet = new GuestSheet(words, deeds);
    this.rows = new GuestRows(part("guests"), words, (id) => this.pick(id));
    part("open-list").addEventListener("click", () => this.open());
    this.query.addEventListener("input", () => this.search());
    part("filters").addEventListener("click", (event) => {
      const chosen = (event.target as Element).closest<HTMLElement>("[data-filter]");
      if (chosen) this.choose(chosen.dataset["filter"] as Filter);
    });
  }

  /** Draw again what changed, if anybody looks. */
  refresh(): void {
    this.guestSheet.renew((id) => this.keeper().guests.get(id));
    if (this.sheet.open) this.draw();
    else this.rows.show([]); // a phone that is no terminal any more keeps nobody
  }

  private open(): void {
    this.query.value = "";
    this.foundByBox.clear();
    this.sheet.showModal();
    this.draw();
    if (this.keeper().may("search")) this.query.focus();
  }

  private choose(filter: Filter): void {
    this.filter = filter;
    for (const button of part("filters").querySelectorAll<HTMLElement>("[data-filter]")) {
      button.setAttribute("aria-pressed", String(button.dataset["filter"] === filter));
    }
    this.draw();
  }

  /** What this phone knows at once; family names and phones only the box knows. */
  private search(): void {
    this.foundByBox.clear();
    this.refusal = "";
    this.draw();
    clearTimeout(this.asking);
    const query = this.query.value.trim();
    if (!query || !this.keeper().up) return;
    this.asking = setTimeout(() => void this.ask(query), ASK_MS);
  }

  private async ask(query: string): Promise<void> {
    const answer = await this.keeper().box.evening(query).catch((fault: unknown) => fault);
    if (this.query.value.trim() !== query) return;
    this.refusal = answer instanceof Refused ? answer.message : "";
    const items = answer instanceof Error ? [] : (answer as Evening).items;
    this.foundByBox = new Set(items.map((guest) => guest.id));
    this.draw();
  }

  private draw(): void {
    const keeper = this.keeper();
    const everybody = keeper.may("search") ? [...keeper.guests.values()] : [];
    const kinds = { all: everybody, expected: everybody.filter(isExpected),
      arrived: everybody.filter((guest) => guest.arrived > 0) };
    for (const button of part("filters").querySelectorAll<HTMLElement>("[data-filter]")) {
      const count = kinds[button.dataset["filter"] as Filter].length;
      const place = button.querySelector("b");
      if (place) place.textContent = String(count);
    }
    const found = kinds[this.filter].filter((guest) => this.fits(guest)).sort(byTime(keeper.me));
    this.rows.show(found);
    part("guests").hidden = found.length === 0;
    const why = !keeper.may("search") ? "list.role" : everybody.length ? "list.none" : "list.empty";
    show(part("guests-empty"), found.length ? null : this.refusal || this.words.say(why));
  }

  private fits(guest: Guest): boolean {
    const words = fold(this.query.value).split(/\s+/).filter(Boolean);
    if (this.foundByBox.has(guest.id)) return true;
    const code = (guest.accessCode ?? "").toLowerCase();
    const text = fold(`${guest.customerFirstName ?? ""} ${guest.table.name}`);
    return words.every((word) => {
      const isCode = code !== "" && [code, code.slice(4), code.replace("-", "")].includes(word);
      return text.includes(word) || isCode || word === fold(guest.table.number ?? "");
    });
  }

  private pick(id: string): void {
    const guest = this.keeper().guests.get(id);
    if (guest) this.guestSheet.open(guest);
  }
}

function isExpected(guest: Guest): boolean {
  return holds(guest) && guest.arrived < guest.guests;
}

/** As the evening goes, those of the whole evening first; then by table as people count. */
function byTime(me: Me | null): (one: Guest, other: Guest) => number {
  const since = (guest: Guest) => (me && guest.slot !== null ? minutesOfEvening(guest.slot, me) : -1);
  return (one, other) =>
    since(one) - since(other) ||
    one.table.name.localeCompare(other.table.name, undefined, { numeric: true });
}
