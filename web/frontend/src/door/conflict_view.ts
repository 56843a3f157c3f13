/** Show conflicts: parties that were admitted at two doors or that the box would have refused. */
import { byId } from "./dom";
import type { DoorState } from "./door_state";
import type { StoredConflict } from "./types";
import { clockOf } from "./venue_time";
import type { Words } from "./words";

const DISABLED_MS = 600; // a tap within this time was meant for the previous content

export class ConflictView {
  private readonly dialog = byId<HTMLDialogElement>("conflict");
  private readonly ok = byId<HTMLButtonElement>("conflict-ok");
  private readonly correct = byId<HTMLButtonElement>("conflict-correct");
  private disabledTimer = 0;

  /**
   * `doorState` returns null while the phone is unpaired. `appeared` is called when the dialog
   * opens.
   */
  constructor(
    private readonly words: Words,
    private readonly doorState: () => DoorState | null,
    private readonly appeared: () => void,
  ) {
    this.ok.addEventListener("click", () => void this.dismiss(false));
    this.correct.addEventListener("click", () => void this.dismiss(true));
    // Escape closes the dialog but does not dismiss the conflict, so show it again.
    this.dialog.addEventListener("close", () => void this.show());
    byId("verdict").addEventListener("close", () => this.dialog.open && this.disableBriefly());
  }

  /** Show the next conflict that is not dismissed. If there is none, close the dialog. */
  async show(): Promise<void> {
    const stored = (await this.doorState()?.storage.conflicts()) ?? [];
    const conflict = stored.find((conflict) => !conflict.dismissed);
    if (!conflict) return this.dialog.close();
    const isAnother = this.dialog.dataset["id"] !== conflict.id;
    this.fill(conflict);
    if (isAnother) this.disableBriefly();
    if (this.dialog.open) return;
    this.dialog.showModal();
    this.appeared();
  }

  /**
   * Disable the button briefly, so that a tap meant for something else does not dismiss the
   * conflict.
   */
  private disableBriefly(): void {
    clearTimeout(this.disabledTimer);
    this.ok.disabled = this.correct.disabled = true;
    this.disabledTimer = setTimeout(() => {
      this.ok.disabled = this.correct.disabled = false;
      this.ok.focus();
    }, DISABLED_MS);
  }

  private fill(conflict: StoredConflict): void {
    const { words } = this;
    const { guest, other, arrived, guests } = conflict;
    const me = this.doorState()?.me;
    const twice = conflict.kind === "admitted_twice" && other.terminalId !== null;
    this.dialog.dataset["id"] = conflict.id;
    const known = guest !== null || Boolean(conflict.reservationId);
    const where = known ? other : (conflict.admissions[0] ?? other);
    const despite = conflict.roleMissing ? "conflict.role" : "conflict.despite";
    const textKey = !known ? "conflict.unknown" : twice ? "conflict.text" : despite;
    byId("conflict-title").textContent = words.say(twice ? "conflict.title" : "conflict.anyway");
    byId("conflict-text").textContent = words.say(textKey, {
      name: guest?.customerFirstName ?? words.say("nobody"),
      table: guest?.table.name ?? "",
      word: words.say(`word.${conflict.despite}`),
      door: where.terminal ?? words.say("another"),
      time: me ? clockOf(where.at, me) : "",
    });
    const count = known ? words.say("conflict.count", { arrived, guests }) : "";
    byId("conflict-count").textContent = count;
    const mayCorrect = known && arrived > guests && this.doorState()?.hasRole("override");
    this.correct.hidden = !mayCorrect;
    this.correct.textContent = words.say("conflict.correct", { guests });
    this.ok.textContent = words.say(mayCorrect ? "conflict.leave" : "conflict.ok", { arrived });
  }

  private async dismiss(correct: boolean): Promise<void> {
    const doorState = this.doorState();
    const id = this.dialog.dataset["id"] ?? "";
    await doorState?.storage.dismissConflict(id, correct);
    await this.show();
    await doorState?.acknowledge(id, correct);
  }
}
