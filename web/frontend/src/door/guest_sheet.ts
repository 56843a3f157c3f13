/** A guest's sheet, where staff check in by hand or undo the latest check-in. */
import { byId, ignoreSecondTaps, runOnce, showText, Stepper } from "./dom";
import type { Guest, ScanRequest } from "./types";
import type { Words } from "./words";

/** The actions of the sheet. Each promise resolves when the verdict is shown. */
export interface GuestActions {
  checkIn(request: ScanRequest): Promise<void>;
  undoLatest(guest: Guest, reason: string): Promise<void>;
}

export class GuestSheet {
  private readonly sheet = byId<HTMLDialogElement>("guest-sheet");
  private readonly stepper = new Stepper(byId("guest-stepper"));
  private guest: Guest | null = null;
  private changedAt = 0;
  private missing = 1; // guests not yet checked in when the sheet opened

  constructor(
    private readonly words: Words,
    private readonly actions: GuestActions,
  ) {
    ignoreSecondTaps(this.sheet, () => this.changedAt);
    byId("guest-go").addEventListener("click", () => void this.act((guest) => this.go(guest)));
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
    this.missing = Math.max(1, guest.guests - guest.arrived);
    this.stepper.set(this.missing, this.missing);
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
      guest.slot ?? words.say("whole"), guest.accessCode,
      guest.phoneEnd && words.say("phone", { end: guest.phoneEnd }),
    ].filter(Boolean).join(" · ");
    showText(byId("guest-note"), guest.notes);
    const isAsked = !byId("guest-reasons").hidden;
    // If another door has undone the check-in, there is nothing left to undo.
    if (isAsked && guest.arrived === 0) this.showReasons(false);
    byId("guest-undo").hidden = guest.arrived === 0 || !byId("guest-reasons").hidden;
  }

  /** Ask for the reason for an undo if `why` is true. Otherwise, ask how many guests have come. */
  private showReasons(why: boolean): void {
    this.changedAt = performance.now();
    byId("guest-reasons").hidden = !why;
    byId("guest-go").hidden = why;
    byId("guest-here").hidden = why || this.missing < 2; // for one guest there is nothing to choose
  }

  private go(guest: Guest): Promise<void> {
    const arrivals = this.stepper.count < this.missing ? { arrivals: this.stepper.count } : {};
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
