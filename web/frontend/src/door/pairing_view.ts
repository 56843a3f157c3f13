/** A phone becomes a terminal: by the secret of the portal's QR, or by digits that are typed. */
import { type Box, NotPaired, Refused } from "./box";
import { western } from "../_fold";
import { part, show } from "./dom";
import type { Me } from "./types";
import type { Words } from "./words";

const DIGITS = /^[0-9]{8}$/;
const LINKED = /[#&]pair=([A-Za-z0-9_-]{43})(?:&|$)/;
const TOO_MANY = "RATE_LIMITED";

export class PairingView {
  private readonly code = part<HTMLInputElement>("pair-code");
  private secret: string | null = null;

  constructor(
    private readonly words: Words,
    private readonly box: Box,
    private readonly paired: (me: Me) => void,
  ) {
    part("pair-form").addEventListener("submit", (event) => {
      event.preventDefault();
      void this.send();
    });
    addEventListener("hashchange", () => {
      this.takeSecret();
      this.draw();
    });
  }

  open(problem: string | null): void {
    part("pairing").hidden = false;
    show(part("pair-problem"), problem);
    this.takeSecret();
    this.draw();
  }

  close(): void {
    part("pairing").hidden = true;
    this.code.value = "";
    this.secret = null;
  }

  /** What stood behind # was sent to nobody on the way; nor does it stay in the address. */
  private takeSecret(): void {
    const found = LINKED.exec(location.hash)?.[1];
    if (found && !part("pairing").hidden) this.secret = found;
    if (location.hash) history.replaceState(null, "", location.pathname + location.search);
  }

  /** Who comes by the link has nothing to type. */
  private draw(): void {
    part("pair-typed").hidden = this.secret !== null;
    part("pair-linked").hidden = this.secret === null;
    if (this.secret === null) this.code.focus();
  }

  private async send(): Promise<void> {
    const code = this.secret ?? western(this.code.value).replace(/[\s-]/g, "");
    if (this.secret === null && !DIGITS.test(code)) return this.refuse("pair.digits");
    const button = part("pair-form").querySelector<HTMLButtonElement>("button[type=submit]");
    if (button) button.disabled = true;
    try {
      const me = await this.box.pair(code, part<HTMLInputElement>("pair-name").value.trim());
      this.paired(me);
    } catch (fault) {
      if (fault instanceof Refused && fault.code === TOO_MANY) return this.refuse("pair.later");
      const isNo = fault instanceof NotPaired || fault instanceof Refused;
      if (isNo) this.secret = null; // a link that is used up: digits may be typed instead
      this.refuse(isNo ? "pair.refused" : "pair.away");
    } finally {
      if (button) button.disabled = false;
    }
  }

  private refuse(why: string): void {
    show(part("pair-problem"), this.words.say(why));
    this.draw();
  }
}
