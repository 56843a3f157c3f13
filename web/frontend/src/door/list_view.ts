/** Tonight's guests: who is expected, who is in, and a check-in by hand. */
import { made, once, part, show, Stepper } from "./dom";
import type { Keeper } from "./keeper";
import { fold } from "./offline";
import type { Guest } from "./types";
import type { Wish } from "./verdict_view";
import { isVip } from "./verdict_words";
import type { Words } from "./words";

type Filter = "all" | "expected" | "arrived";

const ASK_MS = 200;
const LABELS: Readonly<Record<string, string>> = {
  requested: "word.not_confirmed", pending: "word.payment_due", partial: "word.payment_due",
  cancelled: "word.cancelled", declined: "word.declined",
};

export class ListView {
  private readonly sheet = part<HTMLDialogElement>("list-sheet");
  private readonly guestSheet = part<HTMLDialogElement>("guest-sheet");
  private readonly query = part<HTMLInputElement>("query");
  private readonly stepper = new Stepper(part("guest-stepper"));
  private filter: Filter = "all";
  private chosen: Guest | null = null;
  private foundByBox = new Set<string>();
  private asking = 0;

  constructor(
    private readonly words: Words,
    private readonly keeper: () => Keeper,
    private readonly checkIn: (wish: Wish) => Promise<void>,
  ) {
    part("open-list").addEventListener("click", () => this.open());
    this.query.addEventListener("input", () => this.search());
    part("filters").addEventListener("click", (event) => {
      const chosen = (event.target as Element).closest<HTMLElement>("[data-filter]");
      if (chosen) this.choose(chosen.dataset["filter"] as Filter);
    });
    part("guest-go").addEventListener("click", () => void once("guest-go", () => this.go()));
  }

  /** Draw again what changed, if anybody looks. */
  refresh(): void {
    if (this.sheet.open) this.draw();
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
    this.draw();
    clearTimeout(this.asking);
    const query = this.query.value.trim();
    if (!query || !this.keeper().up) return;
    this.asking = setTimeout(() => void this.ask(query), ASK_MS);
  }

  private async ask(query: string): Promise<void> {
    const { items } = await this.keeper().box.evening(query).catch(() => ({ items: [] }));
    if (this.query.value.trim() !== query) return;
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
    const found = kinds[this.filter].filter((guest) => this.fits(guest)).sort(byTime);
    part("guests").replaceChildren(...found.map((guest) => this.row(guest)));
    part("guests").hidden = found.length === 0;
    const why = !keeper.may("search") ? "list.role" : everybody.length ? "list.none" : "list.empty";
    show(part("guests-empty"), found.length ? null : this.words.say(why));
  }

  private fits(guest: Guest): boolean {
    const words = fold(this.query.value).split(/\s+/).filter(Boolean);
    if (this.foundByBox.has(guest.id)) return true;
    const code = (guest.accessCode ?? "").toLowerCase();
    const text = fold(`${guest.customerFirstName ?? ""} ${guest.table.name}`);
    return words.every((word) => {
      const isCode = code !== "" && [code, code.slice(4), code.replace("-", "")].includes(word);
      return text.includes(word) || isCode;
    });
  }

  private row(guest: Guest): HTMLLIElement {
    const line = made("li");
    const button = made("button", "guest");
    button.type = "button";
    button.dataset["state"] = stateOf(guest);
    button.append(made("b", "guest-table", guest.table.name));
    const name = made("span", "guest-who");
    name.append(made("bdi", "", guest.customerFirstName ?? this.words.say("nobody")));
    if (isVip(guest)) name.append(made("i", "tag", this.words.say("vip")));
    const label = LABELS[guest.status];
    if (label) name.append(made("i", "tag", this.words.say(label)));
    button.append(name);
    button.append(made("span", "guest-slot", guest.slot ?? ""));
    const party = made("span", "guest-party", `${guest.arrived} / ${guest.guests}`);
    party.dir = "ltr";
    button.append(party);
    button.addEventListener("click", () => this.pick(guest));
    line.append(button);
    return line;
  }

  private pick(guest: Guest): void {
    const { words } = this;
    this.chosen = guest;
    const missing = Math.max(1, guest.guests - guest.arrived);
    part("guest-name").textContent = [guest.customerFirstName, guest.table.name]
      .filter(Boolean).join(" · ");
    const slot = guest.slot ?? words.say("whole");
    part("guest-facts").textContent = [
      words.say("counter", { arrived: guest.arrived, expected: guest.guests }), slot,
      guest.accessCode,
    ].filter(Boolean).join(" · ");
    show(part("guest-note"), guest.notes);
    this.stepper.set(missing, missing);
    this.guestSheet.showModal();
    part("guest-go").focus();
  }

  private async go(): Promise<void> {
    const guest = this.chosen;
    if (!guest) return;
    const missing = guest.guests - guest.arrived;
    const arrivals = this.stepper.count < missing ? { arrivals: this.stepper.count } : {};
    await this.checkIn({ reservationId: guest.id, ...arrivals });
    this.guestSheet.close();
  }
}

export function holds(guest: Guest): boolean {
  return guest.status !== "cancelled" && guest.status !== "declined";
}

function isExpected(guest: Guest): boolean {
  return holds(guest) && guest.arrived < guest.guests;
}

function stateOf(guest: Guest): string {
  if (guest.arrived >= guest.guests) return "in";
  if (guest.arrived > 0) return "partly";
  return holds(guest) ? "expected" : "gone";
}

/** By hour, slots after midnight last; then by table as people count. */
function byTime(one: Guest, other: Guest): number {
  const hour = (guest: Guest) => (guest.slot ?? "").replace(/^0[0-5]/, (early) => `2${early}`);
  const tables = one.table.name.localeCompare(other.table.name, undefined, { numeric: true });
  return hour(one).localeCompare(hour(other)) || tables;
}
