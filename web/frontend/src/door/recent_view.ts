/** Verdicts that are over: the last green as a strip above the camera, and the last five in a list. */
import { made, part } from "./dom";
import type { Guest, Me, Verdict } from "./types";
import { clockOf } from "./venue_time";
import type { Words } from "./words";

const MOST = 5;

interface Past {
  verdict: Verdict;
  at: string;
}

export class RecentView {
  private past: Past[] = []; // the newest first
  private readonly sheet = part<HTMLDialogElement>("recent-sheet");
  private readonly strip = part("strip");

  /** `again` shows the verdict of the strip as it was. */
  constructor(
    private readonly words: Words,
    private readonly me: () => Me | null,
    again: () => void,
  ) {
    for (const opener of document.querySelectorAll("[data-recent]")) {
      opener.addEventListener("click", () => this.open());
    }
    this.strip.addEventListener("click", () => again());
  }

  /** A verdict shows, or was reached without showing, at that instant. */
  add(verdict: Verdict, at: string): void {
    this.past = [{ verdict, at }, ...this.past].slice(0, MOST);
    if (this.sheet.open) this.draw();
  }

  /** This green has shown for long enough; null when another verdict has come since. */
  age(verdict: Verdict | null): void {
    this.strip.hidden = verdict === null;
    const guest = verdict?.reservation;
    part("strip-table").textContent = guest?.table.name ?? "";
    part("strip-facts").replaceChildren(...(guest ? this.facts(guest) : []));
    const at = this.past.find((one) => one.verdict === verdict)?.at;
    part("strip-time").textContent = at ? this.clock(at) : "";
  }

  clear(): void {
    this.past = [];
    this.age(null);
    part("recent").replaceChildren();
  }

  private open(): void {
    this.draw();
    this.sheet.showModal();
  }

  private draw(): void {
    part("recent").replaceChildren(...this.past.map((one) => this.row(one)));
    part("recent-empty").hidden = this.past.length > 0;
  }

  private row({ verdict, at }: Past): Node {
    const row = part<HTMLTemplateElement>("recent-row").content.cloneNode(true) as DocumentFragment;
    const [line, use] = [row.querySelector("li"), row.querySelector("use")];
    if (line) line.dataset["colour"] = verdict.colour;
    use?.setAttribute("href", `#shape-${verdict.colour}`);
    const { reservation: guest } = verdict;
    const facts = made("span", "past-facts");
    if (guest) facts.append(made("b", "", guest.table.name), ...this.facts(guest));
    const word = made("b", "", this.words.say(`word.${verdict.result}`));
    line?.append(word, made("time", "", this.clock(at)), facts);
    return row;
  }

  private facts(guest: Guest): Node[] {
    const party = made("span", "party", `${guest.arrived} / ${guest.guests}`);
    party.dir = "ltr";
    return guest.customerFirstName ? [party, made("bdi", "", guest.customerFirstName)] : [party];
  }

  private clock(at: string): string {
    const me = this.me();
    return me ? clockOf(at, me) : "";
  }
}
