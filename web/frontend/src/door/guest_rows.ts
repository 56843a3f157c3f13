/** The rows of the guest list. Rows are updated in place, so that they keep the focus. */
import { create, createName } from "./dom";
import type { Guest } from "./types";
import type { Words } from "./words";

interface Row {
  line: HTMLLIElement;
  button: HTMLButtonElement;
  drawn: string;
}

const LABELS: Readonly<Record<string, string>> = {
  requested: "word.not_confirmed", pending: "word.payment_due", partial: "word.payment_due",
  cancelled: "word.cancelled", declined: "word.declined",
};

export class GuestRows {
  private readonly rows = new Map<string, Row>();

  constructor(
    private readonly place: HTMLElement,
    private readonly words: Words,
    picked: (id: string) => void,
  ) {
    place.addEventListener("click", (event) => {
      const id = (event.target as Element).closest<HTMLElement>("[data-guest]")?.dataset["guest"];
      if (id !== undefined) picked(id);
    });
  }

  /** Show exactly these guests, in this order. `lateText` says since when a party is late. */
  show(guests: readonly Guest[], lateText: (guest: Guest) => string = () => ""): void {
    const lines = [...this.place.children];
    const focused = lines.findIndex((line) => line.contains(document.activeElement));
    const button = focused < 0 ? null : (document.activeElement as HTMLElement);
    const wanted = new Set(guests.map((guest) => guest.id));
    for (const [id, { line }] of this.rows) {
      if (wanted.has(id)) continue;
      line.remove();
      this.rows.delete(id);
    }
    let next = this.place.firstElementChild;
    for (const guest of guests) {
      const { line } = this.drawn(guest, lateText(guest));
      if (line === next) next = next.nextElementSibling;
      else this.place.insertBefore(line, next);
    }
    if (button && document.activeElement !== button) this.focus(button, focused);
  }

  /** Focus `button` again. If its row was removed, focus the row that is now at index `at`. */
  private focus(button: HTMLElement, at: number): void {
    const there = this.place.children[Math.min(at, this.place.children.length - 1)];
    const target = button.isConnected ? button : there?.querySelector("button") ?? this.place;
    target.focus({ preventScroll: true });
  }

  private drawn(guest: Guest, late: string): Row {
    const row = this.rows.get(guest.id) ?? newRow(guest.id);
    this.rows.set(guest.id, row);
    const drawn = JSON.stringify([this.words.code, guest, late]);
    if (row.drawn !== drawn) this.draw(row.button, guest, late);
    row.drawn = drawn;
    return row;
  }

  private draw(button: HTMLButtonElement, guest: Guest, late: string): void {
    const { words } = this;
    button.dataset["state"] = stateOf(guest);
    const name = create("span", "guest-who");
    const nobody = words.say(guest.walkIn ? "walk_in" : "nobody");
    name.append(createName("bdi", "", guest.customerFirstName ?? nobody));
    if (guest.phoneEnd) name.append(create("span", "phone-end", words.say("phone", { end: guest.phoneEnd })));
    if (isVip(guest)) name.append(create("i", "tag", words.say("vip")));
    if (guest.out) name.append(create("i", "tag", words.say("outside", { count: guest.out })));
    if (late) name.append(create("i", "tag", late));
    const label = guest.gone ? `gone.${guest.gone}` : LABELS[guest.status];
    if (label) name.append(create("i", "tag", words.say(label)));
    const party = create("span", "guest-party", `${guest.arrived} / ${guest.guests}`);
    party.dir = "ltr";
    button.replaceChildren(
      createName("b", "guest-table", guest.table.name), name,
      create("span", "guest-slot", guest.slot ?? ""), party,
    );
  }
}

function newRow(id: string): Row {
  const line = create("li");
  const button = create("button", "guest");
  button.type = "button";
  button.dataset["guest"] = id;
  line.append(button);
  return { line, button, drawn: "" };
}

/** Whether the reservation holds its table. */
export function holds(guest: Guest): boolean {
  return guest.status !== "cancelled" && guest.status !== "declined";
}

function stateOf(guest: Guest): string {
  if (guest.arrived >= guest.guests) return "in";
  if (guest.arrived > 0) return "partly";
  return holds(guest) ? "expected" : "gone";
}

/** Whether the guest is marked as VIP, or the table or the notes say "VIP". */
export function isVip(guest: Guest): boolean {
  const text = `${guest.table.name} ${guest.notes ?? ""}`;
  return guest.vip === true || /(^|[^\p{L}])VIP([^\p{L}]|$)/iu.test(text);
}
