/** A phone becomes a terminal: the code of the portal's QR, or typed. */
import { type Box, NotPaired, Refused } from "./box";
import { part, show } from "./dom";
import type { Me } from "./types";
import type { Words } from "./words";

const DIGITS = /^[0-9]{8}$/;

export class PairingView {
  private readonly code = part<HTMLInputElement>("pair-code");

  constructor(
    private readonly words: Words,
    private readonly box: Box,
    private readonly paired: (me: Me) => void,
  ) {
    part("pair-form").addEventListener("submit", (event) => {
      event.preventDefault();
      void this.send();
    });
    addEventListener("hashchange", () => this.takeCode());
  }

  open(problem: string | null): void {
    part("pairing").hidden = false;
    show(part("pair-problem"), problem);
    this.takeCode();
    if (!this.code.value) this.code.focus();
  }

  close(): void {
    part("pairing").hidden = true;
    this.code.value = "";
  }

  /** The code behind # was never sent anywhere; nor does it stay in the address. */
  private takeCode(): void {
    const found = /[#&]pair=([0-9]{8})/.exec(location.hash)?.[1];
    if (found && !part("pairing").hidden) this.code.value = found;
    if (location.hash) history.replaceState(null, "", location.pathname + location.search);
  }

  private async send(): Promise<void> {
    const code = western(this.code.value).replace(/[\s-]/g, "");
    if (!DIGITS.test(code)) return this.refuse("pair.digits");
    const button = part("pair-form").querySelector<HTMLButtonElement>("button[type=submit]");
    if (button) button.disabled = true;
    try {
      const me = await this.box.pair(code, part<HTMLInputElement>("pair-name").value.trim());
      this.paired(me);
    } catch (fault) {
      const isNo = fault instanceof NotPaired || fault instanceof Refused;
      this.refuse(isNo ? "pair.refused" : "pair.away");
    } finally {
      if (button) button.disabled = false;
    }
  }

  private refuse(why: string): void {
    show(part("pair-problem"), this.words.say(why));
    this.code.focus();
  }
}

/** Arabic keyboards write their own digits. */
function western(text: string): string {
  return text.replace(/[٠-٩]/g, (digit) => String(digit.charCodeAt(0) - 0x660));
}
