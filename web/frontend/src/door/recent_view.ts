/** Show the latest green verdict in a strip above the camera, and list the last five verdicts. */
import { byId, create, createName } from "./dom";
import type { Guest, Me, Verdict } from "./types";
import { clockOf } from "./venue_time";
import type { Words } from "./words";

const MAX_ROWS = 5;

interface RecentVerdict {
  verdict: Verdict;
  at: string;
}

export class RecentView {
  private verdicts: RecentVerdict[] = []; // newest first
  private readonly sheet = byId<HTMLDialogElement>("recent-sheet");
  private readonly strip = byId("strip");

  /** `reopen` shows the strip's verdict again. */
  constructor(
    private readonly words: Words,
    private readonly me: () => Me | null,
    reopen: () => void,
  ) {
    for (const opener of document.querySelectorAll("[data-recent]")) {
      opener.addEventListener("click", () => this.open());
    }
    this.strip.addEventListener("click", () => reopen());
  }

  /** Add a verdict. `at` is its time in ISO 8601. */
  add(verdict: Verdict, at: string): void {
    this.verdicts = [{ verdict, at }, ...this.verdicts].slice(0, MAX_ROWS);
    if (this.sheet.open) this.draw();
  }

  /** Show in the strip a green verdict that closed automatically. Null hides the strip. */
  showStrip(verdict: Verdict | null): void {
    this.strip.hidden = verdict === null;
    const guest = verdict?.reservation;
    byId("strip-table").textContent = guest?.table.name ?? "";
    byId("strip-facts").replaceChildren(...(guest ? this.facts(guest) : []));
    const at = this.verdicts.find((recent) => recent.verdict === verdict)?.at;
    byId("strip-time").textContent = at ? this.clock(at) : "";
  }

  clear(): void {
    this.verdicts = [];
    this.showStrip(null);
    byId("recent").replaceChildren();
  }

  private open(): void {
    this.draw();
    this.sheet.showModal();
  }

  private draw(): void {
    byId("recent").replaceChildren(...this.verdicts.map((recent) => this.row(recent)));
    byId("recent-empty").hidden = this.verdicts.length > 0;
  }

  private row({ verdict, at }: RecentVerdict): Node {
    const row = byId<HTMLTemplateElement>("recent-row").content.cloneNode(true) as DocumentFragment;
    const [line, use] = [row.querySelector("li"), row.querySelector("use")];
    if (line) line.dataset["colour"] = verdict.colour;
    use?.setAttribute("href", `#shape-${verdict.colour}`);
    const { reservation: guest } = verdict;
    const facts = create("span", "past-facts");
    if (guest) facts.append(createName("b", "", guest.table.name), ...this.facts(guest));
    const word = create("b", "", this.words.say(`word.${verdict.result}`));
    line?.append(word, create("time", "", this.clock(at)), facts);
    return row;
  }

  private facts(guest: Guest): Node[] {
    const party = create("span", "party", `${guest.arrived} / ${guest.guests}`);
    party.dir = "ltr";
    const name = guest.customerFirstName;
    return name ? [party, createName("bdi", "", name)] : [party];
  }

  private clock(at: string): string {
    const me = this.me();
    return me ? clockOf(at, me) : "";
  }
}
