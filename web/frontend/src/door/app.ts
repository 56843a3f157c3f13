/** The door app: ties camera, scanner, list and box together. */
import { Box, NotPaired, OutOfReach, Refused } from "./box";
import { Camera, photoPixels } from "./camera";
import { ConflictView } from "./conflict_view";
import { closeSheets, once, part, prepareSheets, show } from "./dom";
import { Keeper } from "./keeper";
import { Link } from "./link";
import { ListView } from "./list_view";
import { MenuView } from "./menu_view";
import { PairingView } from "./pairing_view";
import { Reader } from "./reader";
import { RecentView } from "./recent_view";
import { ScanQueue } from "./scan_queue";
import { forgetShell, keepShell } from "./shell";
import { Signals } from "./signals";
import { Stage } from "./stage";
import { Storage } from "./storage";
import type { Guest, Me, Verdict } from "./types";
import { VerdictView, type Wish } from "./verdict_view";
import { listenToWedge } from "./wedge";
import { Words } from "./words";

const SLOW_MS = 150;
// Whoever has one of these open is not looking at guests.
const BUSY = "dialog.sheet[open]:not(#conflict)";

export class App {
  private readonly data = document.body.dataset;
  private readonly words = new Words(part("words").textContent ?? "{}");
  private readonly signals = new Signals();
  private readonly box = new Box(this.data["terminal"] ?? "", () => this.words.code);
  private readonly reader = new Reader(this.data["reader"] ?? "", this.data["wasm"] ?? "");
  private readonly camera = new Camera(
    part<HTMLVideoElement>("video"), part<HTMLVideoElement>("peek"), this.reader,
    (codes) => this.queue.see(codes), (fault) => this.stage.fail(fault),
  );
  private readonly stage = new Stage(this.words, this.camera, this.reader);
  private readonly verdict = new VerdictView(this.words, () => this.keeper.me, {
    undo: (verdict) => this.undo(verdict),
    correct: (verdict, wish, arrivals) => this.correct(verdict, wish, arrivals),
    again: (wish) => this.decide(wish),
    aged: (verdict) => this.recent.age(verdict),
  });
  private readonly recent = new RecentView(
    this.words, () => this.keeper.me, () => this.verdict.showAged(),
  );
  private readonly queue = new ScanQueue(
    this.verdict, () => document.querySelector(BUSY) !== null, (wish) => this.decide(wish),
  );
  private readonly environment = this.data["environment"] ?? "live";
  private readonly storage = new Storage(`venuebox-door-${this.environment}`);
  private keeper = this.newKeeper();
  private link: Link | null = null;
  private readonly conflict = new ConflictView(
    this.words, () => (this.link ? this.keeper : null), () => this.signals.give("amber"),
  );
  private readonly list = new ListView(this.words, () => this.keeper, {
    checkIn: (wish) => this.queue.add(wish),
    takeBack: (guest, reason) => this.takeBack(guest, reason),
  });
  private readonly menu = new MenuView(
    this.words, () => this.keeper, this.signals, () => this.draw(), () => void this.unpair(),
  );
  private readonly pairing = new PairingView(this.words, this.box, (me) => void this.paired(me));
  private awake: WakeLockSentinel | null = null;

  constructor() {
    prepareSheets();
    listenToWedge((code) => this.keeper.me && this.queue.hear(code));
    part("open-code").addEventListener("click", () => this.openCode());
    part("code-form").addEventListener("submit", (event) => {
      event.preventDefault();
      void this.submitCode();
    });
    part("photo").addEventListener("change", (event) => {
      void this.readPhoto(event.currentTarget as HTMLInputElement);
    });
    document.addEventListener("visibilitychange", () => void this.stayAwake());
  }

  /** What this phone was when it was last used. */
  async start(): Promise<void> {
    if (!isSecureContext) return this.explainInsecure();
    await this.keeper.load();
    this.keepShell(); // of a phone that is not paired yet, too
    if (this.keeper.me) return this.begin();
    try {
      await this.paired(await this.box.me(3000));
    } catch (fault) {
      const away = fault instanceof OutOfReach ? this.words.say("pair.away") : "";
      this.pairing.open([away, this.unsent(this.keeper, true)].filter(Boolean).join(" ") || null);
    }
  }

  private async paired(me: Me): Promise<void> {
    await this.keeper.introduce(me);
    this.begin();
  }

  private begin(): void {
    this.pairing.close();
    part("bar").hidden = part("stage").hidden = part("dock").hidden = false;
    this.draw();
    this.link = new Link(this.keeper, () => this.words.say("reason.undone"));
    this.link.start();
    this.keepShell(); // a pairing that ended took it away
    void navigator.storage?.persist?.().catch(() => undefined); // a full phone throws others out first
    void this.stayAwake();
    void this.conflict.show();
  }

  private keepShell(): void {
    void keepShell(this.data["start"] ?? "", () => this.verdict.current === null);
  }

  private draw(): void {
    this.stage.draw();
    this.menu.refresh();
    this.list.refresh();
  }

  private newKeeper(): Keeper {
    const keeper: Keeper = new Keeper(this.box, this.storage, this.environment, {
      changed: () => {
        this.menu.refresh();
        this.list.refresh();
      },
      conflict: () => void this.conflict.show(),
      // An answer to who this phone was before says nothing of who it is now.
      unpaired: (revoked) => void (keeper === this.keeper && this.leave("pair.revoked", !revoked)),
    });
    return keeper;
  }

  /** Decide, and show the verdict; `instead` of one whose count was wrong. */
  private async decide(wish: Wish, instead?: Verdict): Promise<void> {
    if (!this.keeper.me) return;
    part("override").inert = true; // what shows is about to go
    const slow = setTimeout(() => document.body.classList.add("deciding"), SLOW_MS);
    try {
      const verdict = await this.keeper.decide(wish);
      // Where the next guest stands already, the green of the one before would pass for theirs.
      const isLate = instead && instead !== this.verdict.current && verdict.colour === "green";
      if (isLate) this.note(verdict);
      else this.tell(verdict, wish);
    } catch (fault) {
      this.fail(fault, wish);
    } finally {
      clearTimeout(slow);
      document.body.classList.remove("deciding");
      part("override").inert = false;
    }
  }

  /** No verdict: whoever stands there shall know whose fault it is, and the next one goes on. */
  private fail(fault: unknown, wish: Wish): void {
    if (fault instanceof NotPaired) return;
    if (fault instanceof Refused) return this.tell(refusal(), wish, this.words.why(fault));
    if (fault instanceof OutOfReach) return this.tell(refusal(), wish, this.words.say("pair.away"));
    reportError(fault);
    this.tell({ ...refusal(), result: "error" }, wish, this.words.say("say.error_here"));
  }

  private tell(verdict: Verdict, wish: Wish, sentence?: string): void {
    const warning = verdict.unsaved ? this.words.say("say.unsaved") : undefined;
    this.verdict.show(this.note(verdict), wish, sentence ?? warning);
    this.recent.age(null);
    this.signals.give(verdict.colour);
  }

  private note(verdict: Verdict): Verdict {
    const complete = this.keeper.complete(verdict);
    this.recent.add(complete, new Date(this.keeper.now()).toISOString());
    return complete;
  }

  private async undo(verdict: Verdict): Promise<void> {
    try {
      const undone = await this.keeper.undo(verdict, this.words.say("reason.at_once"));
      this.tell(undone ?? refusal(), {});
    } catch (fault) {
      this.fail(fault, {});
    }
  }

  private async takeBack(guest: Guest, reason: string): Promise<void> {
    try {
      this.tell(await this.keeper.takeBack(guest, reason), {});
    } catch (fault) {
      this.fail(fault, {});
    }
  }

  /** Fewer came than were let in: the first count is taken back, the true one counted. */
  private async correct(verdict: Verdict, wish: Wish, arrivals: number): Promise<void> {
    if (arrivals >= verdict.admitted) return;
    try {
      const undone = await this.keeper.undo(verdict, this.words.say("reason.fewer"));
      if (undone) await this.decide({ ...wish, arrivals }, verdict);
      else this.tell(refusal(), {});
    } catch (fault) {
      this.fail(fault, {});
    }
  }

  private openCode(): void {
    part<HTMLInputElement>("code").value = "";
    part<HTMLDialogElement>("code-sheet").showModal();
    part("code").focus();
  }

  private submitCode(): Promise<void> {
    const code = part<HTMLInputElement>("code").value.trim();
    return once("code-go", async () => {
      if (!code) return;
      await this.queue.add({ code });
      part<HTMLDialogElement>("code-sheet").close();
    });
  }

  private async readPhoto(input: HTMLInputElement): Promise<void> {
    const file = input.files?.[0];
    input.value = "";
    const picture = file ? await photoPixels(file) : null;
    const [code] = picture ? await this.reader.read(picture, true) : [];
    show(part("photo-problem"), code ? null : this.words.say(
      this.reader.works ? "photo.empty" : "camera.failed",
    ));
    if (code) void this.queue.add({ code });
  }

  private async stayAwake(): Promise<void> {
    if (document.visibilityState !== "visible" || !this.keeper.me) return;
    if (this.awake && !this.awake.released) return;
    this.awake = (await navigator.wakeLock?.request("screen").catch(() => null)) ?? null;
  }

  private async unpair(): Promise<void> {
    // Out of reach, the phone forgets all the same; the portal can still revoke it.
    await this.box.unpair().catch(() => undefined);
    await this.leave(null);
  }

  /**
   * Not a terminal any more: nothing of the evening stays on this phone. Who has only lost its
   * cookie keeps the scans that the box has not heard of, and brings them when it is paired again.
   */
  private async leave(why: string | null, keepQueue = false): Promise<void> {
    if (!this.link) return;
    this.link.end();
    this.link = null;
    this.camera.stop();
    closeSheets();
    const { storage } = this;
    // As it was in memory: of a revoked browser the box has emptied the storage already.
    const unsent = this.unsent(this.keeper, keepQueue);
    this.keeper = this.newKeeper();
    await this.awake?.release().catch(() => undefined);
    this.recent.clear();
    this.draw();
    for (const id of ["guests", "picks", "verdict-facts"]) part(id).replaceChildren();
    for (const id of ["verdict-table", "verdict-note", "guest-name", "guest-facts", "guest-note",
      "conflict-text"]) part(id).textContent = "";
    part("bar").hidden = part("stage").hidden = part("dock").hidden = true;
    show(part("alone-text"), null);
    await (keepQueue ? storage.forgetEvening() : storage.wipe());
    await forgetShell(this.environment, this.data["start"] ?? "");
    this.pairing.open(why && [this.words.say(why), unsent].filter(Boolean).join(" "));
  }

  /** What becomes of those that the box has not heard of, where this phone is no terminal. */
  private unsent({ waiting, unheard }: Keeper, areKept: boolean): string {
    if (areKept) return waiting ? this.words.say("pair.kept", { count: waiting }) : "";
    return unheard ? this.words.say("pair.lost", { people: this.words.guests(unheard) }) : "";
  }

  private explainInsecure(): void {
    part("stage").hidden = false;
    this.stage.fail("insecure");
  }
}

/** Where the box says no, and not to the guest. */
function refusal(): Verdict {
  return {
    scanId: "", result: "refused", colour: "grey", say: null, overridable: false, admitted: 0,
    reservation: null, firstCheckIn: null,
  };
}
