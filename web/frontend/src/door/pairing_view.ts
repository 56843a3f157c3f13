/** The pairing screen. It pairs with the secret from the portal's QR code, or with typed digits. */
import { westernDigits } from "../shared/text_folding";
import { type Box, NotPaired, Refused } from "./box";
import { byId, showText } from "./dom";
import type { Me } from "./types";
import type { Words } from "./words";

const DIGITS = /^[0-9]{8}$/;
const LINKED = /[#&]pair=([A-Za-z0-9_-]{43})(?:&|$)/;
const TOO_MANY = "RATE_LIMITED";

export class PairingView {
  private readonly code = byId<HTMLInputElement>("pair-code");
  private secret: string | null = null;

  constructor(
    private readonly words: Words,
    private readonly box: Box,
    private readonly paired: (me: Me) => void,
    private readonly linkedAgain: () => void,
  ) {
    byId("pair-form").addEventListener("submit", (event) => {
      event.preventDefault();
      void this.send();
    });
    addEventListener("hashchange", () => this.takeLink());
  }

  open(problem: string | null): void {
    byId("pairing").hidden = false;
    showText(byId("pair-problem"), problem);
    this.takeLink();
  }

  close(): void {
    byId("pairing").hidden = true;
    this.code.value = "";
    this.secret = null;
  }

  /**
   * Read the secret from the URL fragment, which browsers never send, and remove the fragment. If
   * this phone is already paired, the secret is used once it has been unpaired.
   */
  takeLink(): void {
    const found = LINKED.exec(location.hash)?.[1];
    if (found) this.secret = found;
    if (location.hash) history.replaceState(null, "", location.pathname + location.search);
    if (found && byId("pairing").hidden) this.linkedAgain();
    this.draw();
  }

  /** Hide the field for the digits if the link contained a secret. */
  private draw(): void {
    byId("pair-typed").hidden = this.secret !== null;
    byId("pair-linked").hidden = this.secret === null;
    if (this.secret === null) this.code.focus();
  }

  private async send(): Promise<void> {
    const code = this.secret ?? westernDigits(this.code.value).replace(/[\s-]/g, "");
    if (this.secret === null && !DIGITS.test(code)) return this.refuse("pair.digits");
    const button = byId("pair-form").querySelector<HTMLButtonElement>("button[type=submit]");
    if (button) button.disabled = true;
    try {
      const me = await this.box.pair(code, byId<HTMLInputElement>("pair-name").value.trim());
      this.paired(me);
    } catch (error) {
      if (error instanceof Refused && error.code === TOO_MANY) return this.refuse("pair.later");
      const isNo = error instanceof NotPaired || error instanceof Refused;
      if (isNo) this.secret = null; // the link's secret is not valid, so show the digits field
      this.refuse(isNo ? "pair.refused" : "pair.away");
    } finally {
      if (button) button.disabled = false;
    }
  }

  private refuse(why: string): void {
    showText(byId("pair-problem"), this.words.say(why));
    this.draw();
  }
}
