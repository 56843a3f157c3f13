/** The verdict over the whole screen: colour, shape, word, table, party, one sentence. */
import { made, part, show, Stepper } from "./dom";
import { ignoreSecondTaps } from "./double_tap";
import type { Guest, Me, Scan, Verdict } from "./types";
import { isVip, sentenceOf, unbroken } from "./verdict_words";
import type { Words } from "./words";

export type Wish = Omit<Scan, "scanId" | "at">;

/** What staff may do from here, each done when its own verdict shows; and what time does. */
export interface VerdictDeeds {
  undo(verdict: Verdict): Promise<void>;
  correct(verdict: Verdict, wish: Wish, arrivals: number): Promise<void>;
  again(wish: Wish): Promise<void>;
  aged(verdict: Verdict): void;
}

interface Shown {
  verdict: Verdict;
  wish: Wish;
  sentence: string | undefined;
  at: number;
  /** For a while it goes for nobody but a finger. */
  isHeld: boolean;
}

const UNDO_MS = 10_000;
const SETTLE_MS = 700;
const SEEN_MS = 2000; // what takes longer than a look
const AGED_MS = 3000; // then a green would pass for the next guest's
const BUTTONS = ["picks", "reasons", "fewer-here", "undo", "override"];

export class VerdictView {
  private readonly dialog = part<HTMLDialogElement>("verdict");
  private readonly stepper = new Stepper(part("verdict-stepper"));
  private shown: Shown | null = null;
  private aged: Shown | null = null;
  private isSeen = false;
  private seeing = 0;
  private ageing = 0;
  private letNext: () => void = () => undefined;
  private changedAt = 0;
  private ticking = 0;
  private settling = 0;
  private count: number | null = null; // how many are here, as long as nobody was told
  private acting: Verdict | null = null;

  constructor(
    private readonly words: Words,
    private readonly me: () => Me | null,
    private readonly deeds: VerdictDeeds,
  ) {
    ignoreSecondTaps(this.dialog, () => this.changedAt);
    this.dialog.addEventListener("click", (event) => this.tap(event.target as Element));
    this.dialog.addEventListener("close", () => this.hidden());
    for (const touch of ["pointerdown", "keydown", "input"]) {
      this.dialog.addEventListener(touch, () => this.age());
    }
    part("next").addEventListener("click", () => this.dialog.close());
    part("undo").addEventListener("click", () => this.undo());
    part("override").addEventListener("click", () => this.askReason());
    part("reason-form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.override(part<HTMLInputElement>("reason").value);
    });
    this.stepper.changed = (count) => {
      this.count = count;
      clearTimeout(this.settling);
      this.settling = setTimeout(() => this.settle(), SETTLE_MS);
    };
  }

  get current(): Verdict | null {
    return this.shown?.verdict ?? null;
  }

  /** Whether what shows has not been seen for long enough. */
  get isFresh(): boolean {
    return this.dialog.open && !this.isSeen;
  }

  /** Whether somebody writes why this verdict is set aside. */
  get isAsking(): boolean {
    return this.dialog.open && !part("reasons").hidden;
  }

  /** When another verdict may show: what a finger is at work on stays, and amber and red a while. */
  free(isForeign: boolean): Promise<void> {
    const isKept = () => this.dialog.open && (this.acting !== null || this.isAsking ||
      (!this.isSeen && (isForeign || Boolean(this.shown?.isHeld))));
    if (!isKept()) return Promise.resolve();
    return new Promise((done) => (this.letNext = () => void (isKept() || done())));
  }

  wait(count: number): void {
    show(part("waiting"), count > 0 ? this.words.say("next.waiting", { count }) : null);
  }

  /** The green that has aged, as it was. */
  showAged(): void {
    if (this.aged) this.show(this.aged.verdict, this.aged.wish, this.aged.sentence, this.aged.at);
  }

  show(verdict: Verdict, wish: Wish, sentence?: string, at = performance.now()): void {
    const isWished = this.acting !== null && wish.arrivals === undefined; // and no count put right
    const isHeld = isWished || verdict.colour === "amber" || verdict.colour === "red";
    this.settle();
    this.shown = { verdict, wish, sentence, at, isHeld };
    if (this.aged?.verdict !== verdict) this.aged = null;
    this.changedAt = performance.now();
    this.isSeen = this.changedAt - at >= SEEN_MS;
    this.freeze(null);
    const { words } = this;
    const guest = verdict.reservation;
    this.dialog.dataset["colour"] = verdict.colour;
    this.dialog.dataset["result"] = verdict.result;
    part("shape").firstElementChild?.setAttribute("href", `#shape-${verdict.colour}`);
    part("verdict-word").textContent = words.say(`word.${verdict.result}`);
    show(part("verdict-table"), guest?.table.name ?? null);
    this.showFacts(guest);
    part("verdict-vip").hidden = !guest || !isVip(guest);
    part("verdict-sentence").textContent = unbroken(
      sentence ?? sentenceOf(verdict, words, this.me()),
    );
    show(part("verdict-note"), guest?.notes ?? null);
    part("verdict-offline").hidden = !verdict.offline;
    part("reasons").hidden = true;
    part("override").hidden = !verdict.overridable;
    this.showPicks(verdict.candidates ?? []);
    this.showUndo(verdict);
    if (this.dialog.open && !this.isOnTop()) this.dialog.close(); // opens again above the other
    if (!this.dialog.open) this.dialog.showModal();
    this.dialog.scrollTop = 0;
    part("next").focus({ preventScroll: true });
    for (const id of ["verdict-word", "verdict-table"]) fit(part(id));
    clearTimeout(this.seeing);
    this.seeing = setTimeout(() => {
      this.isSeen = true;
      this.letNext();
    }, SEEN_MS);
    this.age();
  }

  /** A green leaves the screen by itself, some time after a finger was on it. */
  private age(): void {
    clearTimeout(this.ageing);
    if (this.current?.colour !== "green") return;
    this.ageing = setTimeout(() => {
      const { shown } = this;
      if (!shown || this.acting || this.count !== null) return this.age();
      this.dialog.close();
      this.aged = shown;
      this.deeds.aged(shown.verdict);
    }, AGED_MS);
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
        pick.addEventListener("click", () => {
          void this.act(() => this.deeds.again(this.pickOf(guest)));
        });
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
      const left = Math.ceil((UNDO_MS - (performance.now() - (this.shown?.at ?? 0))) / 1000);
      part("undo-left").textContent = String(left);
      if (left > 0) return;
      clearInterval(this.ticking);
      part("undo").hidden = part("fewer-here").hidden = true;
    };
    tick();
    this.ticking = setInterval(tick, 250);
  }

  private askReason(): void {
    this.changedAt = performance.now();
    part("override").hidden = true;
    part("reasons").hidden = false;
    part<HTMLInputElement>("reason").value = "";
    part("reasons").querySelector("button")?.focus();
    part("reasons").scrollIntoView({ block: "end" });
  }

  private override(reason: string): void {
    const given = reason.trim();
    if (!given) return part("reason").focus();
    const wish = { ...this.shown?.wish, override: { reason: given } };
    void this.act(() => this.deeds.again(wish));
  }

  private undo(): void {
    const { current: verdict } = this;
    this.count = null;
    if (verdict) void this.act(() => this.deeds.undo(verdict));
  }

  /** Whoever goes on before the count has settled has counted all the same. */
  private settle(): void {
    clearTimeout(this.settling);
    const { shown, count } = this;
    this.count = null;
    if (!shown || count === null) return;
    void this.act(() => this.deeds.correct(shown.verdict, shown.wish, count));
  }

  /** One press is one deed, however often an impatient finger taps. */
  private async act(deed: () => Promise<void>): Promise<void> {
    const { current: verdict } = this;
    if (this.acting === verdict) return;
    this.freeze(verdict);
    try {
      await deed();
    } finally {
      if (this.acting === verdict) this.freeze(null);
    }
  }

  private freeze(acting: Verdict | null): void {
    this.acting = acting;
    for (const id of BUTTONS) part(id).inert = acting !== null;
    this.letNext();
  }

  private isOnTop(): boolean {
    const there = document.elementFromPoint(innerWidth / 2, innerHeight / 2);
    return there === null || this.dialog.contains(there);
  }

  private tap(target: Element): void {
    const reason = target.closest<HTMLElement>("[data-reason]")?.dataset["reason"];
    if (reason) return this.override(this.words.say(reason));
    if (this.acting) return; // what cannot be pressed lets the tap through
    if (!target.closest("button, input, form, .stepper, .reasons")) this.dialog.close();
  }

  private hidden(): void {
    if (this.dialog.open) return;
    this.settle();
    clearInterval(this.ticking);
    clearTimeout(this.ageing);
    this.shown = null;
    this.letNext();
  }
}

/** The largest size at which the text still fits its line. */
function fit(place: HTMLElement): void {
  place.style.removeProperty("font-size");
  if (place.hidden) return;
  const size = Number.parseFloat(getComputedStyle(place).fontSize);
  const ratio = place.clientWidth / place.scrollWidth;
  if (ratio < 1) place.style.fontSize = `${Math.max(28, Math.floor(size * ratio))}px`;
}
