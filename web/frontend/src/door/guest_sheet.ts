/** A guest's sheet: check in by hand, count out, free the table, or undo the latest check-in. */
import { byId, ignoreSecondTaps, runOnce, showText, Stepper } from "./dom";
import { awaitedBack, insideOf } from "./offline";
import type { Guest, ScanRequest } from "./types";
import type { Words } from "./words";

/** The actions of the sheet. Each promise resolves when the verdict is shown. */
export interface GuestActions {
  checkIn(request: ScanRequest): Promise<void>;
  undoLatest(guest: Guest, reason: string): Promise<void>;
  /** Report that the party has left or did not come, or take that back. Shows no verdict. */
  report(guest: Guest, action: Report): Promise<void>;
  mayReport(): boolean;
}

type Report = "left" | "no-show" | "take-back";
const REPORTS: readonly Report[] = ["left", "no-show", "take-back"];

const UNSEEN = new Set(["confirmed", "pending", "partial"]);

export class GuestSheet {
  private readonly sheet = byId<HTMLDialogElement>("guest-sheet");
  private readonly stepper = new Stepper(byId("guest-stepper"));
  private readonly leavers = new Stepper(byId("guest-out-stepper"));
  private guest: Guest | null = null;
  private changedAt = 0;
  private missing = 1; // guests who may come in, and by default do, when the sheet opened
  private awaited = 1;

  constructor(
    private readonly words: Words,
    private readonly actions: GuestActions,
  ) {
    ignoreSecondTaps(this.sheet, () => this.changedAt);
    byId("guest-go").addEventListener("click", () => void this.act((guest) => this.go(guest)));
    byId("guest-out-go").addEventListener("click", () => void this.act(
      (guest) => this.actions.checkIn(
        { reservationId: guest.id, leaving: true, arrivals: this.leavers.count },
      ),
    ));
    for (const action of REPORTS) {
      byId(`guest-${action}`).addEventListener("click", () => void this.report(action));
    }
    byId("guest-undo").addEventListener("click", () => this.askReason());
    byId("guest-reasons").addEventListener("click", (event) => {
      const chosen = (event.target as Element).closest<HTMLElement>("[data-reason]");
      if (chosen) this.undoLatest(words.say(chosen.dataset["reason"] ?? ""));
    });
    byId("guest-reason-form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.undoLatest(byId<HTMLInputElement>("guest-reason").value.trim());
    });
    this.sheet.addEventListener("close", () => {
      this.guest = null;
    });
  }

  open(guest: Guest): void {
    const [missing, out] = [Math.max(0, guest.guests - guest.arrived), awaitedBack(guest)];
    this.missing = Math.max(1, missing + out);
    this.awaited = out || this.missing;
    this.stepper.set(this.awaited, this.missing);
    this.leavers.set(1, insideOf(guest));
    this.showReasons(false);
    this.fill(guest);
    if (!this.sheet.open) this.sheet.showModal();
    byId("guest-go").focus();
  }

  /** Redraw the sheet if the data of its guest has changed. */
  renew(find: (id: string) => Guest | undefined): void {
    const guest = this.guest && find(this.guest.id);
    if (guest && guest !== this.guest) this.fill(guest);
  }

  private fill(guest: Guest): void {
    const { words } = this;
    this.guest = guest;
    byId("guest-name").textContent = [guest.customerFirstName, guest.table.name]
      .filter(Boolean).join(" · ");
    byId("guest-facts").textContent = [
      words.say("counter", { arrived: guest.arrived, expected: guest.guests }),
      guest.gone ? words.say(`gone.${guest.gone}`) : "",
      guest.out ? words.say("outside", { count: guest.out }) : "",
      guest.slot ?? words.say("whole"), guest.accessCode,
      guest.phoneEnd && words.say("phone", { end: guest.phoneEnd }),
    ].filter(Boolean).join(" · ");
    showText(byId("guest-note"), guest.notes);
    const isAsked = !byId("guest-reasons").hidden;
    // If another door has undone the check-in, there is nothing left to undo.
    if (isAsked && guest.arrived === 0) this.showReasons(false);
    byId("guest-undo").hidden = guest.arrived === 0 || !byId("guest-reasons").hidden;
    this.showLeaving(guest);
  }

  private showLeaving(guest: Guest): void {
    const [inside, isAsking] = [insideOf(guest), !byId("guest-reasons").hidden];
    const mayReport = this.actions.mayReport() && !isAsking;
    if (inside > 0) this.leavers.set(this.leavers.count, inside);
    byId("guest-out").hidden = inside === 0 || isAsking;
    byId("guest-left").hidden = !mayReport || guest.arrived === 0 || Boolean(guest.gone);
    const isAwaited = guest.arrived === 0 && !guest.gone && UNSEEN.has(guest.status);
    byId("guest-no-show").hidden = !mayReport || !isAwaited;
    byId("guest-take-back").hidden = !mayReport || !guest.gone;
    if (!mayReport) return;
    byId("guest-go").hidden = Boolean(guest.gone);
    byId("guest-here").hidden = this.missing < 2 || Boolean(guest.gone);
  }

  /** The sheet stays open and offers to take the report back. */
  private report(action: Report): Promise<void> {
    return runOnce(`guest-${action}`, async () => {
      if (this.guest) await this.actions.report(this.guest, action);
    });
  }

  /** Ask for the reason for an undo if `why` is true. Otherwise, ask how many guests have come. */
  private showReasons(why: boolean): void {
    this.changedAt = performance.now();
    byId("guest-reasons").hidden = !why;
    byId("guest-go").hidden = why;
    if (this.guest) this.showLeaving(this.guest);
    byId("guest-here").hidden = why || this.missing < 2; // for one guest there is nothing to choose
  }

  private go(guest: Guest): Promise<void> {
    const arrivals = this.stepper.count !== this.awaited ? { arrivals: this.stepper.count } : {};
    return this.actions.checkIn({ reservationId: guest.id, ...arrivals });
  }

  private askReason(): void {
    byId("guest-undo").hidden = true;
    this.showReasons(true);
    byId<HTMLInputElement>("guest-reason").value = "";
    byId("guest-reasons").querySelector("button")?.focus();
    byId("guest-reasons").scrollIntoView({ block: "end" });
  }

  private undoLatest(reason: string): void {
    if (!reason) return byId("guest-reason").focus();
    void this.act((guest) => this.actions.undoLatest(guest, reason));
  }

  private act(action: (guest: Guest) => Promise<void>): Promise<void> {
    return runOnce("guest-go", async () => {
      const { guest } = this;
      if (!guest) return;
      byId("guest-reasons").inert = true;
      try {
        await action(guest);
      } finally {
        byId("guest-reasons").inert = false;
        this.sheet.close();
      }
    });
  }
}
