/** The verdict over the whole screen: colour, shape, word, table, party, one sentence. */
import { made, part, show, Stepper } from "./dom";
import { clockOf } from "./venue_time";
import type { Guest, Me, Scan, Verdict } from "./types";
import type { Words } from "./words";

export type Wish = Omit<Scan, "scanId" | "at">;

/** What staff may do from here. */
export interface VerdictDeeds {
  undo(verdict: Verdict): void;
  correct(verdict: Verdict, wish: Wish, arrivals: number): void;
  again(wish: Wish): void;
  dismissed(): void;
}

const UNDO_MS = 10_000;
const SETTLE_MS = 700;

export class VerdictView {
  private readonly dialog = part<HTMLDialogElement>("verdict");
  private readonly stepper = new Stepper(part("verdict-stepper"));
  private verdict: Verdict | null = null;
  private wish: Wish = {};
  private shownAt = 0;
  private ticking = 0;
  private settling = 0;

  constructor(
    private readonly words: Words,
    private readonly me: () => Me | null,
    private readonly deeds: VerdictDeeds,
  ) {
    this.dialog.addEventListener("click", (event) => this.tap(event.target as Element));
    this.dialog.addEventListener("close", () => this.hidden());
    part("next").addEventListener("click", () => this.dialog.close());
    part("undo").addEventListener("click", () => this.verdict && deeds.undo(this.verdict));
    part("override").addEventListener("click", () => this.askReason());
    part("reason-form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.override(part<HTMLInputElement>("reason").value);
    });
    this.stepper.changed = (count) => {
      clearTimeout(this.settling);
      const { verdict, wish } = this;
      this.settling = setTimeout(() => verdict && deeds.correct(verdict, wish, count), SETTLE_MS);
    };
  }

  get current(): Verdict | null {
    return this.verdict;
  }

  show(verdict: Verdict, wish: Wish, sentence?: string): void {
    clearTimeout(this.settling);
    this.verdict = verdict;
    this.wish = wish;
    this.shownAt = performance.now();
    const { words } = this;
    const guest = verdict.reservation;
    this.dialog.dataset["colour"] = verdict.colour;
    this.dialog.dataset["result"] = verdict.result;
    part("shape").firstElementChild?.setAttribute("href", `#shape-${verdict.colour}`);
    part("verdict-word").textContent = words.say(`word.${verdict.result}`);
    show(part("verdict-table"), guest?.table.name ?? null);
    this.showFacts(guest);
    part("verdict-vip").hidden = !guest || !isVip(guest);
    part("verdict-sentence").textContent = unbroken(sentence ?? this.sentence(verdict));
    show(part("verdict-note"), guest?.notes ?? null);
    part("verdict-offline").hidden = !verdict.offline;
    part("reasons").hidden = true;
    part("override").hidden = !verdict.overridable;
    this.showPicks(verdict.candidates ?? []);
    this.showUndo(verdict);
    if (!this.dialog.open) this.dialog.showModal();
    this.dialog.scrollTop = 0;
    part("next").focus({ preventScroll: true });
    for (const id of ["verdict-word", "verdict-table"]) fit(part(id));
  }

  private showFacts(guest: Guest | null): void {
    const facts = part("verdict-facts");
    facts.replaceChildren();
    facts.hidden = !guest;
    if (!guest) return;
    const party = made("span", "party");
    party.append(made("b", "", String(guest.arrived)), ` / ${guest.guests}`);
    party.dir = "ltr";
    party.setAttribute("role", "img");
    const { arrived, guests } = guest;
    const said = this.words.say("counter", { arrived, expected: guests });
    party.setAttribute("aria-label", said);
    facts.append(party);
    if (guest.customerFirstName) facts.append(made("bdi", "first-name", guest.customerFirstName));
    if (guest.slot) facts.append(made("span", "slot", guest.slot));
  }

  private showPicks(candidates: readonly Guest[]): void {
    part("picks").replaceChildren(
      ...candidates.map((guest) => {
        const pick = made("button", "pick");
        pick.type = "button";
        pick.append(made("b", "", guest.table.name));
        const name = guest.customerFirstName ?? this.words.say("nobody");
        pick.append(made("bdi", "", [name, guest.slot].filter(Boolean).join(" · ")));
        const party = made("span", "", `${guest.arrived} / ${guest.guests}`);
        party.dir = "ltr";
        pick.append(party);
        pick.addEventListener("click", () => this.deeds.again(this.pickOf(guest)));
        return pick;
      }),
    );
  }

  /** A terminal that may not use the list picks by the code, which fits only one. */
  private pickOf(guest: Guest): Wish {
    const mayPick = this.me()?.terminal.role !== "scan" || !guest.accessCode;
    return mayPick ? { reservationId: guest.id } : { code: guest.accessCode ?? "" };
  }

  private showUndo(verdict: Verdict): void {
    clearInterval(this.ticking);
    const canUndo = verdict.admitted > 0;
    part("undo").hidden = !canUndo;
    part("fewer-here").hidden = !canUndo || verdict.admitted < 2;
    if (!canUndo) return;
    this.stepper.set(verdict.admitted, verdict.admitted);
    const tick = () => {
      const left = Math.ceil((UNDO_MS - (performance.now() - this.shownAt)) / 1000);
      part("undo-left").textContent = String(left);
      if (left > 0) return;
      clearInterval(this.ticking);
      part("undo").hidden = part("fewer-here").hidden = true;
    };
    tick();
    this.ticking = setInterval(tick, 250);
  }

  private askReason(): void {
    part("override").hidden = true;
    part("reasons").hidden = false;
    part<HTMLInputElement>("reason").value = "";
    part("reasons").querySelector("button")?.focus();
    part("reasons").scrollIntoView({ block: "end" });
  }

  private override(reason: string): void {
    const given = reason.trim();
    if (!given) return part("reason").focus();
    this.deeds.again({ ...this.wish, override: { reason: given } });
  }

  private tap(target: Element): void {
    const reason = target.closest<HTMLElement>("[data-reason]")?.dataset["reason"];
    if (reason) return this.override(this.words.say(reason));
    if (!target.closest("button, input, form, .stepper, .reasons")) this.dialog.close();
  }

  private hidden(): void {
    clearInterval(this.ticking);
    this.verdict = null;
    this.deeds.dismissed();
  }

  /** The box's own sentence in this language, else ours. */
  private sentence(verdict: Verdict): string {
    const me = this.me();
    const spoken = me?.terminal.language === this.words.code ? verdict.say?.staff : undefined;
    if (spoken) return spoken;
    const { result, reservation: guest, firstCheckIn: first } = verdict;
    const { words } = this;
    const values = {
      arrived: guest?.arrived ?? 0,
      guests: guest?.guests ?? 0,
      admitted: words.guests(Math.abs(verdict.admitted)),
      party: words.guests(Math.abs(verdict.admitted)),
      date: guest ? words.day(guest.date) : "",
      slot: guest?.slot ?? words.say("whole"),
      time: first && me ? clockOf(first.at, me) : "",
      door: first ? first.terminal ?? first.by ?? words.say("another") : "",
    };
    if (result === "already_checked_in" && first) return words.say("say.already_since", values);
    if ((result === "not_yet" || result === "too_late") && !guest) {
      return words.say("say.another_evening");
    }
    return words.say(`say.${result}`, values);
  }
}

/** Whom the house wants to be met by somebody: the notes or the table say so. */
export function isVip(guest: Guest): boolean {
  return guest.vip === true || /(^|[^\p{L}])VIP([^\p{L}]|$)/iu.test(`${guest.table.name} ${guest.notes ?? ""}`);
}

/** French sets a space before these signs, at which no line may end. */
function unbroken(sentence: string): string {
  return sentence.replace(/ (?=[:;?!»])/g, "\u00a0");
}

/** The largest size at which the text still fits its line. */
function fit(place: HTMLElement): void {
  place.style.removeProperty("font-size");
  if (place.hidden) return;
  const size = Number.parseFloat(getComputedStyle(place).fontSize);
  const ratio = place.clientWidth / place.scrollWidth;
  if (ratio < 1) place.style.fontSize = `${Math.max(28, Math.floor(size * ratio))}px`;
}
