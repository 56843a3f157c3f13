/** The full-screen verdict with its colour, shape, word, table, party and one sentence. */
import { byId, create, createName, ignoreSecondTaps, showText, Stepper } from "./dom";
import { isVip } from "./guest_rows";
import { insideOf } from "./offline";
import type { Guest, Me, Occupancy, ScanRequest, Verdict } from "./types";
import { clockOf, startDate } from "./venue_time";
import type { Words } from "./words";

/** The actions on a verdict. Each promise resolves when the resulting verdict is shown. */
export interface VerdictActions {
  undo(verdict: Verdict): Promise<void>;
  correct(verdict: Verdict, request: ScanRequest, arrivals: number): Promise<void>;
  decide(request: ScanRequest): Promise<void>;
  autoClosed(verdict: Verdict): void;
}

interface Shown {
  verdict: Verdict;
  request: ScanRequest;
  sentence: string | undefined;
  at: number;
  /** True if another scan may not replace the verdict before staff have seen it. */
  isProtected: boolean;
}

const UNDO_MS = 10_000;
const COUNT_DELAY_MS = 700;
const SEEN_MS = 2000; // a verdict counts as seen after this time on screen
// A green verdict that stays on screen could be mistaken for the next guest's verdict.
const AUTO_CLOSE_MS = 3000;
const BUTTONS = ["picks", "reasons", "fewer-here", "undo", "override"];

export class VerdictView {
  private readonly dialog = byId<HTMLDialogElement>("verdict");
  private readonly stepper = new Stepper(byId("verdict-stepper"));
  private shown: Shown | null = null;
  private lastAutoClosed: Shown | null = null;
  private isSeen = false;
  private seenTimer = 0;
  private autoCloseTimer = 0;
  private checkFree: () => void = () => undefined;
  private changedAt = 0;
  private undoTicker = 0;
  private countTimer = 0;
  private count: number | null = null; // the number chosen on the stepper but not applied yet
  private acting: Verdict | null = null;
  private lastRefusal = "";
  private times = 1; // how often the same refusal was decided in a row

  constructor(
    private readonly words: Words,
    private readonly me: () => Me | null,
    private readonly actions: VerdictActions,
  ) {
    ignoreSecondTaps(this.dialog, () => this.changedAt);
    this.dialog.addEventListener("click", (event) => this.onTap(event.target as Element));
    this.dialog.addEventListener("close", () => this.onClose());
    for (const touch of ["pointerdown", "keydown", "input"]) {
      this.dialog.addEventListener(touch, () => this.startAutoClose());
    }
    byId("next").addEventListener("click", () => this.dialog.close());
    byId("undo").addEventListener("click", () => this.undo());
    byId("override").addEventListener("click", () => this.askReason());
    byId("reason-form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.override(byId<HTMLInputElement>("reason").value);
    });
    this.stepper.changed = (count) => {
      this.count = count;
      clearTimeout(this.countTimer);
      this.countTimer = setTimeout(() => this.applyCount(), COUNT_DELAY_MS);
    };
  }

  get current(): Verdict | null {
    return this.shown?.verdict ?? null;
  }

  /** Whether a verdict is on screen and staff may not have seen it yet. */
  get isFresh(): boolean {
    return this.dialog.open && !this.isSeen;
  }

  /** Whether staff are entering the reason for an override. */
  get isEnteringReason(): boolean {
    return this.dialog.open && !byId("reasons").hidden;
  }

  /**
   * Resolve when another verdict may replace the one on screen. No action may be running, and staff
   * must not be entering a reason. Staff must also have seen a protected verdict. If the next
   * scan is of a foreign code (`isForeign`), staff must also have seen an unprotected verdict.
   */
  whenFree(isForeign: boolean): Promise<void> {
    const isBlocked = () => this.dialog.open && (this.acting !== null || this.isEnteringReason ||
      (!this.isSeen && (isForeign || Boolean(this.shown?.isProtected))));
    if (!isBlocked()) return Promise.resolve();
    return new Promise((done) => (this.checkFree = () => void (isBlocked() || done())));
  }

  showWaiting(count: number): void {
    showText(byId("waiting"), count > 0 ? this.words.say("next.waiting", { count }) : null);
  }

  /** Reopen the green verdict that closed automatically. */
  reopenAutoClosed(): void {
    const { lastAutoClosed: last } = this;
    if (last) this.show(last.verdict, last.request, last.sentence, last.at);
  }

  show(verdict: Verdict, request: ScanRequest, sentence?: string, at = performance.now()): void {
    // A request with `arrivals` corrects a count. Its verdict may be replaced at once.
    const isStaffAction = this.acting !== null && request.arrivals === undefined;
    const isProtected = isStaffAction || verdict.colour === "amber" || verdict.colour === "red";
    this.applyCount();
    this.shown = { verdict, request, sentence, at, isProtected };
    if (this.lastAutoClosed?.verdict !== verdict) this.lastAutoClosed = null;
    this.changedAt = performance.now();
    this.isSeen = this.changedAt - at >= SEEN_MS;
    this.setActing(null);
    const { words } = this;
    const guest = verdict.reservation;
    this.countRefusal(verdict, request);
    this.dialog.dataset["full"] = fullness(verdict.occupancy);
    this.dialog.dataset["colour"] = verdict.colour;
    this.dialog.dataset["result"] = verdict.result;
    byId("shape").firstElementChild?.setAttribute("href", `#shape-${verdict.colour}`);
    byId("verdict-word").textContent = words.say(`word.${verdict.result}`);
    showText(byId("verdict-table"), guest?.table.name ?? null);
    this.showFacts(guest);
    byId("verdict-vip").hidden = !guest || !isVip(guest);
    byId("verdict-sentence").textContent = unbroken(
      sentence ?? sentenceOf(verdict, words, this.me()),
    );
    showText(byId("verdict-note"), guest?.notes ?? null);
    byId("verdict-offline").hidden = !verdict.offline;
    byId("reasons").hidden = true;
    byId("override").hidden = !verdict.overridable;
    this.showPicks(verdict.candidates ?? []);
    this.showUndo(verdict);
    if (this.dialog.open && !this.isOnTop()) this.dialog.close(); // the next line reopens it on top
    if (!this.dialog.open) this.dialog.showModal();
    this.dialog.scrollTop = 0;
    byId("next").focus({ preventScroll: true });
    shrinkToFit(byId("verdict-word"), shrinkToFit(byId("verdict-table")));
    clearTimeout(this.seenTimer);
    this.seenTimer = setTimeout(() => {
      this.isSeen = true;
      this.checkFree();
    }, SEEN_MS);
    this.startAutoClose();
  }

  /** Make it visible that the same refusal comes again: its number, and a flash. */
  private countRefusal(verdict: Verdict, request: ScanRequest): void {
    const isRefusal = verdict.colour === "amber" || verdict.colour === "red";
    const whom = verdict.reservation?.id ?? request.code;
    const refusal = isRefusal ? `${verdict.result} ${whom}` : "";
    this.times = refusal && refusal === this.lastRefusal ? this.times + 1 : 1;
    this.lastRefusal = refusal;
    const place = byId("verdict-times");
    showText(place, this.times > 1 ? `×${this.times}` : null);
    place.getAnimations().forEach((animation) => animation.cancel());
    if (this.times > 1) place.animate([{ scale: 1.8 }, { scale: 1 }], { duration: 400 });
  }

  /** Close a green verdict after a delay, counted from the last touch. */
  private startAutoClose(): void {
    clearTimeout(this.autoCloseTimer);
    if (this.current?.colour !== "green") return;
    this.autoCloseTimer = setTimeout(() => {
      const { shown } = this;
      const isBusy = this.acting || this.count !== null || this.stepper.isChoosing;
      if (!shown || isBusy) return this.startAutoClose();
      this.dialog.close();
      this.lastAutoClosed = shown;
      this.actions.autoClosed(shown.verdict);
    }, AUTO_CLOSE_MS);
  }

  private showFacts(guest: Guest | null): void {
    const facts = byId("verdict-facts");
    facts.replaceChildren();
    facts.hidden = !guest;
    if (!guest) return;
    const party = create("span", "party");
    party.append(create("b", "", String(guest.arrived)), ` / ${guest.guests}`);
    party.dir = "ltr";
    party.setAttribute("role", "img");
    const { arrived, guests } = guest;
    const said = this.words.say("counter", { arrived, expected: guests });
    party.setAttribute("aria-label", said);
    facts.append(party);
    const name = guest.customerFirstName;
    if (name) facts.append(createName("bdi", "first-name", name));
    if (guest.out) facts.append(create("span", "out", this.words.say("outside", { count: guest.out })));
    if (guest.slot) facts.append(create("span", "slot", guest.slot));
  }

  private showPicks(candidates: readonly Guest[]): void {
    byId("picks").replaceChildren(
      ...candidates.map((guest) => {
        const pick = create("button", "pick");
        pick.type = "button";
        pick.append(createName("b", "", guest.table.name));
        const name = guest.customerFirstName ?? this.words.say("nobody");
        const known = [name, guest.phoneEnd && `…${guest.phoneEnd}`, guest.slot];
        pick.append(createName("bdi", "", known.filter(Boolean).join(" · ")));
        const party = create("span", "", `${guest.arrived} / ${guest.guests}`);
        party.dir = "ltr";
        pick.append(party);
        pick.addEventListener("click", () => {
          void this.act(() => this.actions.decide(this.pickOf(guest)));
        });
        return pick;
      }),
    );
  }

  /**
   * Return the request for the picked guest. A terminal with the role "scan" may not check in by
   * reservation id, so its request contains the access code.
   */
  private pickOf(guest: Guest): ScanRequest {
    const mayPick = this.me()?.terminal.role !== "scan" || !guest.accessCode;
    const picked = mayPick ? { reservationId: guest.id } : { code: guest.accessCode ?? "" };
    return this.shown?.request.leaving ? { ...picked, leaving: true } : picked;
  }

  private showUndo(verdict: Verdict): void {
    clearInterval(this.undoTicker);
    const people = Math.abs(verdict.admitted + verdict.moved);
    const canUndo = people > 0 && verdict.colour === "green";
    byId("undo").hidden = !canUndo;
    byId("fewer-here").hidden = !canUndo || people < 2;
    if (!canUndo) return;
    const how = verdict.moved < 0 ? "leaving" : "here";
    byId("fewer-here").querySelector(".stepper-word")?.replaceChildren(this.words.say(how));
    this.stepper.set(people, people);
    const tick = () => {
      const left = Math.ceil((UNDO_MS - (performance.now() - (this.shown?.at ?? 0))) / 1000);
      byId("undo-left").textContent = String(left);
      if (left > 0) return;
      clearInterval(this.undoTicker);
      byId("undo").hidden = byId("fewer-here").hidden = true;
    };
    tick();
    this.undoTicker = setInterval(tick, 250);
  }

  private askReason(): void {
    this.changedAt = performance.now();
    byId("override").hidden = true;
    byId("reasons").hidden = false;
    byId<HTMLInputElement>("reason").value = "";
    byId("reasons").querySelector("button")?.focus();
    byId("reasons").scrollIntoView({ block: "end" });
  }

  private override(reason: string): void {
    const given = reason.trim();
    if (!given) return byId("reason").focus();
    const request = { ...this.shown?.request, override: { reason: given } };
    void this.act(() => this.actions.decide(request));
  }

  private undo(): void {
    const { current: verdict } = this;
    this.count = null;
    if (verdict) void this.act(() => this.actions.undo(verdict));
  }

  /** Apply the number chosen on the stepper now, without waiting for its delay. */
  private applyCount(): void {
    clearTimeout(this.countTimer);
    const { shown, count } = this;
    this.count = null;
    if (!shown || count === null) return;
    void this.act(() => this.actions.correct(shown.verdict, shown.request, count));
  }

  /** Run one action on the current verdict. Ignore further presses until it ends. */
  private async act(action: () => Promise<void>): Promise<void> {
    const { current: verdict } = this;
    if (this.acting === verdict) return;
    this.setActing(verdict);
    try {
      await action();
    } finally {
      if (this.acting === verdict) this.setActing(null);
    }
  }

  private setActing(acting: Verdict | null): void {
    this.acting = acting;
    for (const id of BUTTONS) byId(id).inert = acting !== null;
    this.checkFree();
  }

  private isOnTop(): boolean {
    const there = document.elementFromPoint(innerWidth / 2, innerHeight / 2);
    return there === null || this.dialog.contains(there);
  }

  private onTap(target: Element): void {
    const reason = target.closest<HTMLElement>("[data-reason]")?.dataset["reason"];
    if (reason) return this.override(this.words.say(reason));
    if (this.acting) return; // a tap on an inert button reaches the dialog, but must not close it
    if (!target.closest("button, input, form, .stepper, .reasons")) this.dialog.close();
  }

  private onClose(): void {
    if (this.dialog.open) return;
    this.applyCount();
    clearInterval(this.undoTicker);
    clearTimeout(this.autoCloseTimer);
    this.shown = null;
    this.checkFree();
  }
}

/**
 * Shrink the text until its longest word, or the longest part that may not wrap, fits, and to at
 * most `largest` pixels. Return its size.
 */
function shrinkToFit(place: HTMLElement, largest = Infinity): number {
  place.style.removeProperty("font-size");
  if (place.hidden) return largest;
  const size = Number.parseFloat(getComputedStyle(place).fontSize);
  const fitting = Math.min(size, Math.floor((size * place.clientWidth) / place.scrollWidth));
  place.style.fontSize = `${Math.min(fitting, largest)}px`;
  return fitting;
}

/** Return the box's message if it is in this language, otherwise the app's message. */
function sentenceOf(verdict: Verdict, words: Words, me: Me | null): string {
  const { result, reservation: guest, firstCheckIn: first } = verdict;
  const values = {
    arrived: guest?.arrived ?? 0,
    guests: guest?.guests ?? 0,
    admitted: words.guests(Math.abs(verdict.admitted)),
    party: words.guests(Math.abs(verdict.admitted + verdict.moved)),
    inside: guest ? insideOf(guest) : 0,
    out: guest?.wentOutAt && me ? clockOf(guest.wentOutAt, me) : "",
    date: guest && me ? words.day(startDate(guest, me)) : "",
    slot: guest?.slot ?? words.say("whole"),
    time: first && me ? clockOf(first.at, me) : "",
    door: [first?.terminal, first?.by].filter(Boolean).join(" · "),
  };
  // Use the app's message, because the box's message mentions a door even if it is unknown.
  if (result === "already_checked_in" && first) {
    return words.say(values.door ? "say.already_since" : "say.already_at", values);
  }
  const spoken = me?.terminal.language === words.code ? verdict.say?.staff : undefined;
  if (spoken) return spoken;
  if ((result === "not_yet" || result === "too_late") && !guest) {
    return words.say("say.another_evening");
  }
  const key = result === "went_out" && !guest ? "say.out_uncoded" : `say.${result}`;
  const full = verdict.occupancy && words.say(`say.${fullness(verdict.occupancy)}`, {
    ...verdict.occupancy,
  });
  return [words.say(key, values), full].filter(Boolean).join(" ");
}

/** Return how full the venue is: `near`, `full`, or "" if it is not nearly full. */
export function fullness(occupancy: Occupancy | null | undefined): string {
  if (!occupancy) return "";
  return occupancy.inside < occupancy.capacity ? "near" : "full";
}

/** Use no-break spaces before French punctuation. */
function unbroken(sentence: string): string {
  return sentence.replace(/ (?=[:;?!»])/g, "\u00a0");
}
