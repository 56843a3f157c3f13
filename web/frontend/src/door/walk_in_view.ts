/** The sheet for people without a reservation: a number and a table to come in, a number to go out. */
import { BoxUnreachable } from "./box";
import { byId, create, createName, runOnce, showText, Stepper } from "./dom";
import type { DoorState } from "./door_state";
import type { FreeTable, ScanRequest } from "./types";
import type { Words } from "./words";

const LARGEST_PARTY = 30;
const FIRST_PARTY = 2;

export class WalkInView {
  private readonly sheet = byId<HTMLDialogElement>("walk-in-sheet");
  private readonly stepper = new Stepper(byId("walk-in-stepper"));
  private isLeaving = false;
  private tableId = ""; // "" is without a table
  private asked = 0; // the number of the latest request for tables

  /** `decide` resolves when the verdict is shown. `leaving` is true in the exit mode. */
  constructor(
    private readonly words: Words,
    private readonly doorState: () => DoorState,
    leaving: () => boolean,
    private readonly decide: (request: ScanRequest) => Promise<void>,
  ) {
    for (const opener of document.querySelectorAll("[data-walk-in]")) {
      opener.addEventListener("click", () => this.open(leaving()));
    }
    byId("walk-in-go").addEventListener("click", () => void this.go());
    this.stepper.changed = () => void this.showTables();
    byId("walk-in-tables").addEventListener("click", (event) => {
      const chosen = (event.target as Element).closest<HTMLElement>("[data-table]");
      if (chosen) this.choose(chosen.dataset["table"] ?? "");
    });
  }

  private open(isLeaving: boolean): void {
    this.isLeaving = isLeaving;
    this.stepper.set(isLeaving ? 1 : FIRST_PARTY, LARGEST_PARTY);
    const { words } = this;
    byId("walk-in-title").textContent = words.say(isLeaving ? "walk_in.out" : "walk_in");
    byId("walk-in-word").textContent = words.say(isLeaving ? "walk_in.out.go" : "check_in");
    byId<HTMLDialogElement>("list-sheet").close();
    this.sheet.showModal();
    void this.showTables();
  }

  /** Show the free tables for this many people, best first. Without the box, there are none. */
  private async showTables(): Promise<void> {
    const asked = ++this.asked;
    const isAsked = !this.isLeaving && this.doorState().isOnline;
    byId("walk-in-tables").hidden = this.isLeaving;
    if (!isAsked) this.draw([], this.isLeaving ? null : "walk_in.offline");
    if (!isAsked) return;
    const found = await this.doorState().box.tables(this.stepper.count).catch((error) => error);
    if (asked !== this.asked) return;
    const isLost = found instanceof BoxUnreachable;
    const tables: FreeTable[] = Array.isArray(found) ? found : [];
    const why = isLost ? "walk_in.offline" : "walk_in.full";
    this.draw(tables, tables.length ? null : why);
  }

  private draw(tables: readonly FreeTable[], why: string | null): void {
    const places = tables.map((table) => {
      const button = choice(table.id);
      button.append(createName("b", "", table.name), create("span", "", `≤ ${table.capacityMax}`));
      return button;
    });
    const none = choice("");
    none.textContent = this.words.say("walk_in.none");
    byId("walk-in-tables").replaceChildren(...places, none);
    showText(byId("walk-in-why"), why && this.words.say(why));
    this.choose(tables[0]?.id ?? "");
  }

  private choose(tableId: string): void {
    this.tableId = tableId;
    for (const button of byId("walk-in-tables").querySelectorAll<HTMLElement>("[data-table]")) {
      button.setAttribute("aria-pressed", String(button.dataset["table"] === tableId));
    }
  }

  private go(): Promise<void> {
    const counted = { walkIn: true, arrivals: this.stepper.count };
    const place = this.tableId ? { tableId: this.tableId } : {};
    const request = this.isLeaving ? { leaving: true } : place;
    return runOnce("walk-in-go", async () => {
      await this.decide({ ...counted, ...request });
      this.sheet.close();
    });
  }
}

function choice(tableId: string): HTMLButtonElement {
  const button = create("button");
  button.type = "button";
  button.dataset["table"] = tableId;
  return button;
}
