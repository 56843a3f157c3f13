/** A party that two doors apart let in, or one that the box would have refused: for both doors. */
import { part } from "./dom";
import type { Keeper } from "./keeper";
import type { KeptConflict } from "./storage";
import { clockOf } from "./venue_time";
import type { Words } from "./words";

const UNREAD_MS = 600; // a tap that comes sooner was meant for what showed there before

export class ConflictView {
  private readonly dialog = part<HTMLDialogElement>("conflict");
  private readonly ok = part<HTMLButtonElement>("conflict-ok");
  private holding = 0;

  /** `keeper` is null while this phone is no terminal; `appeared` when one comes up by itself. */
  constructor(
    private readonly words: Words,
    private readonly keeper: () => Keeper | null,
    private readonly appeared: () => void,
  ) {
    this.ok.addEventListener("click", () => void this.dismiss());
    // Escape puts it out of sight, not out of the world: it goes when somebody has understood it.
    this.dialog.addEventListener("close", () => void this.show());
    part("verdict").addEventListener("close", () => this.dialog.open && this.hold());
  }

  /** The oldest that nobody has understood yet. */
  async show(): Promise<void> {
    const kept = (await this.keeper()?.storage.conflicts()) ?? [];
    const conflict = kept.find((one) => !one.dismissed);
    if (!conflict) return this.dialog.close();
    const isAnother = this.dialog.dataset["id"] !== conflict.id;
    this.fill(conflict);
    if (isAnother) this.hold();
    if (this.dialog.open) return;
    this.dialog.showModal();
    this.appeared();
  }

  /** It comes up under a finger that wants the next guest, or that has understood another one. */
  private hold(): void {
    clearTimeout(this.holding);
    this.ok.disabled = true;
    this.holding = setTimeout(() => {
      this.ok.disabled = false;
      this.ok.focus();
    }, UNREAD_MS);
  }

  private fill(conflict: KeptConflict): void {
    const { words } = this;
    const { guest, other, arrived, guests } = conflict;
    const me = this.keeper()?.me;
    const twice = conflict.kind === "admitted_twice" && other.terminalId !== null;
    this.dialog.dataset["id"] = conflict.id;
    const known = guest !== null || Boolean(conflict.reservationId);
    const where = known ? other : (conflict.admissions[0] ?? other);
    const despite = conflict.roleMissing ? "conflict.role" : "conflict.despite";
    const told = !known ? "conflict.unknown" : twice ? "conflict.text" : despite;
    part("conflict-title").textContent = words.say(twice ? "conflict.title" : "conflict.anyway");
    part("conflict-text").textContent = words.say(told, {
      name: guest?.customerFirstName ?? words.say("nobody"),
      table: guest?.table.name ?? "",
      word: words.say(`word.${conflict.despite}`),
      door: where.terminal ?? words.say("another"),
      time: me ? clockOf(where.at, me) : "",
    });
    part("conflict-count").textContent = known ? words.say("conflict.count", { arrived, guests }) : "";
  }

  private async dismiss(): Promise<void> {
    const keeper = this.keeper();
    const id = this.dialog.dataset["id"] ?? "";
    await keeper?.storage.dismissConflict(id);
    await this.show();
    await keeper?.acknowledge(id);
  }
}
