/** The settings sheet, the top bar, and notices about the connection. */
import { byId, create, showText } from "./dom";
import { holds } from "./guest_rows";
import type { DoorState } from "./door_state";
import { fullness } from "./verdict_view";
import type { Feedback } from "./feedback";
import { clockOf } from "./venue_time";
import type { Words } from "./words";

// After this long without a connection, show a hint about the box's certificate. If the phone does
// not trust a new certificate, all requests fail, as if the box were unreachable.
const TRUST_HINT_MS = 60_000;

export class MenuView {
  private readonly sheet = byId<HTMLDialogElement>("menu-sheet");
  private lastOnline = Date.now();
  private isKept: boolean | null = null;

  constructor(
    private readonly words: Words,
    private readonly doorState: () => DoorState,
    feedback: Feedback,
    languageChanged: () => void,
    unpair: () => void,
  ) {
    byId("open-menu").addEventListener("click", () => this.open());
    for (const what of ["sound", "vibration"] as const) {
      const box = byId<HTMLInputElement>(what);
      box.checked = feedback[what];
      box.addEventListener("change", () => feedback.setEnabled(what, box.checked));
    }
    byId("unpair").addEventListener("click", () => this.showQuestion());
    byId("unpair-yes").addEventListener("click", unpair);
    for (const place of document.querySelectorAll(".languages")) {
      for (const [code, { name }] of Object.entries(words.all)) {
        const button = create("button", "", name);
        button.type = "button";
        button.lang = code;
        button.addEventListener("click", () => {
          words.choose(code);
          this.markLanguage();
          languageChanged();
        });
        place.append(button);
      }
    }
    this.markLanguage();
  }

  private open(): void {
    byId("unpair-sure").hidden = true;
    this.sheet.showModal();
    this.refresh();
  }

  /** Ask whether to unpair this phone, because the link of another pairing was opened on it. */
  askToUnpair(): void {
    this.open();
    this.showQuestion();
  }

  private showQuestion(): void {
    const sure = byId("unpair-sure");
    sure.hidden = false;
    sure.scrollIntoView({ block: "end" }); // the element may be below the visible part
  }

  /** Show whether the browser keeps the stored scans if the phone runs out of space. */
  showStorage(isKept: boolean): void {
    this.isKept = isKept;
    this.refresh();
  }

  refresh(): void {
    const doorState = this.doorState();
    const { words } = this;
    const { me } = doorState;
    const guests = [...doorState.guests.values()];
    const arrived = guests.reduce((sum, guest) => sum + guest.arrived, 0);
    const expected = guests.filter(holds).reduce((sum, guest) => sum + guest.guests, 0);
    byId("venue").textContent = me?.venue.name ?? "";
    byId("evening").textContent = me ? words.day(me.evening) : "";
    byId("arrived").textContent = String(arrived);
    byId("expected").textContent = String(expected);
    byId("counter-said").textContent = words.say("counter", { arrived, expected });
    this.showInside(doorState, arrived);
    byId("open-list").hidden = !doorState.hasRole("search");
    byId("open-walk-in").hidden = !doorState.hasRole("override");
    const { isOnline, pendingScans } = doorState;
    const waiting = pendingScans ? words.say("waiting", { count: pendingScans }) : "";
    const state = words.say(isOnline ? "box.up" : "box.down");
    document.body.dataset["box"] = isOnline ? "up" : "down";
    const connection = [state, waiting].filter(Boolean).join(" · ");
    const note = isOnline ? this.problemText(doorState) : connection;
    if (byId("alone-text").textContent !== note) showText(byId("alone-text"), note);
    byId("state").textContent = connection;
    if (isOnline) this.lastOnline = Date.now();
    byId("trust-hint").hidden = Date.now() - this.lastOnline < TRUST_HINT_MS;
    const unsent = words.say("unpair.unsent", { count: pendingScans });
    showText(byId("unpair-unsent"), pendingScans ? unsent : null);
    byId("terminal-name").textContent = me?.terminal.name ?? "";
    const kept = this.isKept === null ? null : words.say(this.isKept ? "store.kept" : "store.may_go");
    showText(byId("storage"), kept);
    const madeAt = doorState.snapshotMadeAt;
    byId("list-age").textContent = madeAt && me
      ? words.say("list.age", { time: clockOf(madeAt, me) })
      : words.say("list.absent");
  }

  /** Show how many people are inside, if that is not the number of those who arrived. */
  private showInside(doorState: DoorState, arrived: number): void {
    const { words } = this;
    const { inside, occupancy, me } = doorState;
    const capacity = me?.venue.capacity ?? null;
    const isShown = me !== null && (capacity !== null || inside !== arrived);
    const text = words.say(capacity ? "inside.of" : "inside", { inside, capacity: capacity ?? 0 });
    showText(byId("inside"), isShown ? text : null);
    byId("inside").dataset["full"] = fullness(occupancy);
  }

  /** Return a message about a problem other than an unreachable box, or "" if there is none. */
  private problemText(doorState: DoorState): string {
    const { pendingScans: count, refusal, listRefused } = doorState;
    const { words } = this;
    if (count && refusal) return words.say("stuck", { count, reason: words.refusalText(refusal) });
    return listRefused ? words.say("list.refused") : "";
  }

  private markLanguage(): void {
    for (const button of document.querySelectorAll<HTMLElement>(".languages button")) {
      button.setAttribute("aria-pressed", String(button.lang === this.words.code));
    }
  }
}
