/** Settings, the bar and the notes about the connection. */
import { made, part, show } from "./dom";
import { holds } from "./guest_rows";
import type { Keeper } from "./keeper";
import type { Signals } from "./signals";
import { clockOf } from "./venue_time";
import type { Words } from "./words";

export class MenuView {
  private readonly sheet = part<HTMLDialogElement>("menu-sheet");

  constructor(
    private readonly words: Words,
    private readonly keeper: () => Keeper,
    signals: Signals,
    spoke: () => void,
    unpair: () => void,
  ) {
    part("open-menu").addEventListener("click", () => this.open());
    for (const what of ["sound", "vibration"] as const) {
      const box = part<HTMLInputElement>(what);
      box.checked = signals[what];
      box.addEventListener("change", () => signals.turn(what, box.checked));
    }
    part("unpair").addEventListener("click", () => {
      const sure = part("unpair-sure");
      sure.hidden = false;
      sure.scrollIntoView({ block: "end" }); // on a small phone it comes below what shows
    });
    part("unpair-yes").addEventListener("click", unpair);
    for (const place of document.querySelectorAll(".languages")) {
      for (const [code, { name }] of Object.entries(words.all)) {
        const button = made("button", "", name);
        button.type = "button";
        button.lang = code;
        button.addEventListener("click", () => {
          words.choose(code);
          this.markLanguage();
          spoke();
        });
        place.append(button);
      }
    }
    this.markLanguage();
  }

  private open(): void {
    part("unpair-sure").hidden = true;
    this.sheet.showModal();
    this.refresh();
  }

  refresh(): void {
    const keeper = this.keeper();
    const { words } = this;
    const { me } = keeper;
    const guests = [...keeper.guests.values()];
    const arrived = guests.reduce((sum, guest) => sum + guest.arrived, 0);
    const expected = guests.filter(holds).reduce((sum, guest) => sum + guest.guests, 0);
    part("venue").textContent = me?.venue.name ?? "";
    part("evening").textContent = me ? words.day(me.evening) : "";
    part("arrived").textContent = String(arrived);
    part("expected").textContent = String(expected);
    part("counter-said").textContent = words.say("counter", { arrived, expected });
    const waiting = keeper.waiting ? words.say("waiting", { count: keeper.waiting }) : "";
    const state = words.say(keeper.up ? "box.up" : "box.down");
    document.body.dataset["box"] = keeper.up ? "up" : "down";
    const note = keeper.up ? this.trouble(keeper) : [state, waiting].filter(Boolean).join(" · ");
    if (part("alone-text").textContent !== note) show(part("alone-text"), note);
    part("state").textContent = [state, waiting].filter(Boolean).join(" · ");
    const unsent = words.say("unpair.unsent", { count: keeper.waiting });
    show(part("unpair-unsent"), keeper.waiting ? unsent : null);
    part("terminal-name").textContent = me?.terminal.name ?? "";
    const made = keeper.listMadeAt;
    part("list-age").textContent = made && me
      ? words.say("list.age", { time: clockOf(made, me) })
      : words.say("list.absent");
  }

  /** What is wrong although the box is there, and does not mend itself. */
  private trouble(keeper: Keeper): string {
    const { waiting: count, refusal, listRefused } = keeper;
    const { words } = this;
    if (count && refusal) return words.say("stuck", { count, reason: words.why(refusal) });
    return listRefused ? words.say("list.refused") : "";
  }

  private markLanguage(): void {
    for (const button of document.querySelectorAll<HTMLElement>(".languages button")) {
      button.setAttribute("aria-pressed", String(button.lang === this.words.code));
    }
  }
}
