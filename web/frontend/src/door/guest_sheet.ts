/** One guest of the list: let in by hand, or a check-in taken back that was a mistake. */
import { once, part, show, Stepper } from "./dom";
import { ignoreSecondTaps } from "./double_tap";
import type { Guest } from "./types";
import type { Wish } from "./verdict_view";
import type { Words } from "./words";

/** Each is done when its verdict shows. */
export interface GuestDeeds {
  checkIn(wish: Wish): Promise<void>;
  takeBack(guest: Guest, reason: string): Promise<void>;
}

export class GuestSheet {
  private readonly sheet = part<HTMLDialogElement>("guest-sheet");
  private readonly stepper = new Stepper(part("guest-stepper"));
  private guest: Guest | null = null;
  private changedAt = 0;
  private missing = 1; // when the sheet was opened: how many are here was chosen out of these

  constructor(
    private readonly words: Words,
    private readonly deeds: GuestDeeds,
  ) {
    ignoreSecondTaps(this.sheet, () => this.changedAt);
    part("guest-go").addEventListener("click", () => void this.act((guest) => this.go(guest)));
    part("guest-undo").addEventListener("click", () => this.askReason());
    part("guest-reasons").addEventListener("click", (event) => {
      const chosen = (event.target as Element).closest<HTMLElement>("[data-reason]");
      if (chosen) this.takeBack(words.say(chosen.dataset["reason"] ?? ""));
    });
    part("guest-reason-form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.takeBack(part<HTMLInputElement>("guest-reason").value.trim());
    });
    this.sheet.addEventListener("close", () => {
      this.guest = null;
    });
  }

  open(guest: Guest): void {
    this.missing = Math.max(1, guest.guests - guest.arrived);
    this.stepper.set(this.missing, this.missing);
    this.ask(false);
    this.fill(guest);
    if (!this.sheet.open) this.sheet.showModal();
    part("guest-go").focus();
  }

  /** The guest as they are by now, if it is they who show. */
  renew(find: (id: string) => Guest | undefined): void {
    const guest = this.guest && find(this.guest.id);
    if (guest && guest !== this.guest) this.fill(guest);
  }

  private fill(guest: Guest): void {
    const { words } = this;
    this.guest = guest;
    part("guest-name").textContent = [guest.customerFirstName, guest.table.name]
      .filter(Boolean).join(" · ");
    part("guest-facts").textContent = [
      words.say("counter", { arrived: guest.arrived, expected: guest.guests }),
      guest.slot ?? words.say("whole"), guest.accessCode,
    ].filter(Boolean).join(" · ");
    show(part("guest-note"), guest.notes);
    const isAsked = !part("guest-reasons").hidden;
    if (isAsked && guest.arrived === 0) this.ask(false); // another door was faster
    part("guest-undo").hidden = guest.arrived === 0 || !part("guest-reasons").hidden;
  }

  /** One question at a time: how many are here, or why they are taken back. */
  private ask(why: boolean): void {
    this.changedAt = performance.now();
    part("guest-reasons").hidden = !why;
    part("guest-go").hidden = why;
    part("guest-here").hidden = why || this.missing < 2; // one of one is no choice
  }

  private go(guest: Guest): Promise<void> {
    const arrivals = this.stepper.count < this.missing ? { arrivals: this.stepper.count } : {};
    return this.deeds.checkIn({ reservationId: guest.id, ...arrivals });
  }

  private askReason(): void {
    part("guest-undo").hidden = true;
    this.ask(true);
    part<HTMLInputElement>("guest-reason").value = "";
    part("guest-reasons").querySelector("button")?.focus();
    part("guest-reasons").scrollIntoView({ block: "end" });
  }

  private takeBack(reason: string): void {
    if (!reason) return part("guest-reason").focus();
    void this.act((guest) => this.deeds.takeBack(guest, reason));
  }

  private act(deed: (guest: Guest) => Promise<void>): Promise<void> {
    return once("guest-go", async () => {
      const { guest } = this;
      if (!guest) return;
      part("guest-reasons").inert = true;
      try {
        await deed(guest);
      } finally {
        part("guest-reasons").inert = false;
        this.sheet.close();
      }
    });
  }
}
