/** The door app, which connects the camera, the scanner, the guest list and the box. */
import { installAppShell, removeAppShell } from "./app_shell";
import { Box, BoxUnreachable, NotPaired, Refused } from "./box";
import { BoxConnection } from "./box_connection";
import { Camera, photoPixels } from "./camera";
import { CameraView } from "./camera_view";
import { ConflictView } from "./conflict_view";
import { byId, closeSheets, prepareSheets, runOnce, showText } from "./dom";
import { DoorState } from "./door_state";
import { Feedback } from "./feedback";
import { ListView } from "./list_view";
import { MenuView } from "./menu_view";
import { PairingView } from "./pairing_view";
import { Reader } from "./reader";
import { RecentView } from "./recent_view";
import { ScanQueue } from "./scan_queue";
import { Storage } from "./storage";
import type { Guest, Me, ScanRequest, Verdict } from "./types";
import { VerdictView } from "./verdict_view";
import { WalkInView } from "./walk_in_view";
import { listenToWedge } from "./wedge";
import { Words } from "./words";

const SLOW_MS = 150;
// A sheet that covers the camera. While one is open, codes from the camera are ignored.
const OPEN_SHEET = "dialog.sheet[open]:not(#conflict)";

export class App {
  private readonly data = document.body.dataset;
  private readonly words = new Words(byId("words").textContent ?? "{}");
  private readonly feedback = new Feedback();
  private readonly box = new Box(this.data["terminal"] ?? "", () => this.words.code);
  private readonly reader = new Reader(this.data["reader"] ?? "", this.data["wasm"] ?? "");
  private readonly camera = new Camera(
    byId<HTMLVideoElement>("video"), byId<HTMLVideoElement>("peek"), this.reader,
    (codes) => this.queue.addCameraCodes(codes), (fault) => this.cameraView.fail(fault),
  );
  private readonly cameraView = new CameraView(this.words, this.camera, this.reader);
  private readonly verdict = new VerdictView(this.words, () => this.doorState.me, {
    undo: (verdict) => this.undo(verdict),
    correct: (verdict, request, arrivals) => this.correct(verdict, request, arrivals),
    decide: (request) => this.decide(request),
    autoClosed: (verdict) => this.recent.showStrip(verdict),
  });
  private readonly recent = new RecentView(
    this.words, () => this.doorState.me, () => this.verdict.reopenAutoClosed(),
  );
  private readonly queue = new ScanQueue(
    this.verdict, () => document.querySelector(OPEN_SHEET) !== null,
    (request) => this.decide(this.isLeaving && request.code !== undefined
      ? { ...request, leaving: true } : request),
  );
  private readonly environment = this.data["environment"] ?? "live";
  private readonly storage = new Storage(`venuebox-door-${this.environment}`);
  private doorState = this.newDoorState();
  private connection: BoxConnection | null = null;
  private readonly conflict = new ConflictView(
    this.words, () => (this.connection ? this.doorState : null), () => this.feedback.play("amber"),
  );
  private readonly list = new ListView(this.words, () => this.doorState, {
    checkIn: (request) => this.queue.add(request),
    undoLatest: (guest, reason) => this.undoLatest(guest, reason),
    report: (guest, action) => this.report(guest, action),
    mayReport: () => this.doorState.isOnline && this.doorState.hasRole("override"),
  });
  private readonly menu = new MenuView(
    this.words, () => this.doorState, this.feedback, () => this.draw(), () => void this.unpair(),
  );
  private readonly pairing = new PairingView(
    this.words, this.box, (me) => void this.paired(me), () => this.menu.askToUnpair(),
  );
  private wakeLock: WakeLockSentinel | null = null;
  private isLeaving = false; // the exit mode: scanned codes count people out

  constructor() {
    prepareSheets();
    listenToWedge((code) => this.doorState.me && this.queue.addScannerCode(code));
    new WalkInView(
      this.words, () => this.doorState, () => this.isLeaving, (request) => this.queue.add(request),
    );
    for (const id of ["exit-mode", "exit-end"]) {
      byId(id).addEventListener("click", () => this.setLeaving(!this.isLeaving));
    }
    byId("open-code").addEventListener("click", () => this.openCode());
    byId("code-form").addEventListener("submit", (event) => {
      event.preventDefault();
      void this.submitCode();
    });
    byId("missing-ok").addEventListener("click", () => {
      this.doorState.forgetMissing();
      byId<HTMLDialogElement>("missing-sheet").close();
    });
    byId("photo").addEventListener("change", (event) => {
      void this.readPhoto(event.currentTarget as HTMLInputElement);
    });
    document.addEventListener("visibilitychange", () => void this.keepScreenOn());
  }

  /** Start the app if this phone is paired. Otherwise, show the pairing screen. */
  async start(): Promise<void> {
    if (!isSecureContext) return this.explainInsecure();
    await this.doorState.load();
    this.installAppShell(); // even if unpaired, because the pairing screen must load offline too
    if (this.doorState.me) return this.startDoor();
    try {
      await this.paired(await this.box.me(3000));
    } catch (error) {
      const away = error instanceof BoxUnreachable ? this.words.say("pair.away") : "";
      const pending = this.pendingText(this.doorState, true);
      this.pairing.open([away, pending].filter(Boolean).join(" ") || null);
    }
  }

  private async paired(me: Me): Promise<void> {
    await this.doorState.setIdentity(me);
    this.startDoor();
  }

  private startDoor(): void {
    this.pairing.close();
    byId("bar").hidden = byId("stage").hidden = byId("dock").hidden = false;
    this.draw();
    this.connection = new BoxConnection(this.doorState, () => this.words.say("reason.undone"));
    this.connection.start();
    this.installAppShell(); // again, because an earlier unpairing may have deleted the files
    void this.askToPersist();
    this.showMissing();
    void this.keepScreenOn();
    void this.conflict.show();
    this.pairing.takeLink();
  }

  /** Ask the browser to keep the stored scans when the phone runs out of space. */
  private async askToPersist(): Promise<void> {
    const { storage } = navigator;
    const isKept = await (storage?.persist?.() ?? Promise.resolve(false)).catch(() => false);
    this.menu.showStorage(isKept);
  }

  /** Say how many guests the box never heard of, because the browser deleted their scans. */
  private showMissing(): void {
    const { missingPeople } = this.doorState;
    if (missingPeople === 0) return;
    const people = this.words.guests(missingPeople);
    const why = [this.words.say("missing.why"), this.words.say("pair.lost", { people })].join(" ");
    byId("missing-text").textContent = why;
    byId<HTMLDialogElement>("missing-sheet").showModal();
  }

  private installAppShell(): void {
    void installAppShell(this.data["start"] ?? "", () => this.verdict.current === null);
  }

  private draw(): void {
    this.cameraView.draw();
    this.menu.refresh();
    this.list.refresh();
  }

  private newDoorState(): DoorState {
    const doorState: DoorState = new DoorState(this.box, this.storage, this.environment, {
      changed: () => {
        this.menu.refresh();
        this.list.refresh();
      },
      conflict: () => void this.conflict.show(),
      // Ignore responses to requests from an earlier pairing.
      unpaired: (revoked) => {
        if (doorState === this.doorState) void this.endPairing("pair.revoked", !revoked);
      },
    });
    return doorState;
  }

  /** Decide a scan and show its verdict. It replaces `instead` if the scan corrects a count. */
  private async decide(request: ScanRequest, instead?: Verdict): Promise<void> {
    if (!this.doorState.me) return;
    byId("override").inert = true; // no override while the verdict on screen is about to change
    const slow = setTimeout(() => document.body.classList.add("deciding"), SLOW_MS);
    try {
      const verdict = await this.doorState.decide(request);
      // If the verdict to correct is no longer on screen, record the new green verdict without
      // showing it, because staff could mistake it for another guest's verdict.
      const isLate = instead && instead !== this.verdict.current && verdict.colour === "green";
      if (isLate) this.recordVerdict(verdict);
      else this.showVerdict(verdict, request);
    } catch (error) {
      this.showFailure(error, request);
    } finally {
      clearTimeout(slow);
      document.body.classList.remove("deciding");
      byId("override").inert = false;
    }
  }

  /** Show why there is no verdict. The box refused or did not respond, or this app failed. */
  private showFailure(error: unknown, request: ScanRequest): void {
    if (error instanceof NotPaired) return;
    if (error instanceof Refused) {
      return this.showVerdict(greyVerdict(), request, this.words.refusalText(error));
    }
    if (error instanceof BoxUnreachable) {
      return this.showVerdict(greyVerdict(), request, this.words.say("pair.away"));
    }
    reportError(error);
    const verdict = { ...greyVerdict(), result: "error" };
    this.showVerdict(verdict, request, this.words.say("say.error_here"));
  }

  private showVerdict(verdict: Verdict, request: ScanRequest, sentence?: string): void {
    const warning = verdict.unsaved ? this.words.say("say.unsaved") : undefined;
    this.verdict.show(this.recordVerdict(verdict), request, sentence ?? warning);
    this.recent.showStrip(null);
    this.feedback.play(verdict.colour);
  }

  private recordVerdict(verdict: Verdict): Verdict {
    const complete = this.doorState.withLocalFacts(verdict);
    this.recent.add(complete, new Date(this.doorState.now()).toISOString());
    return complete;
  }

  private async undo(verdict: Verdict): Promise<void> {
    try {
      const undone = await this.doorState.undo(verdict, this.words.say("reason.at_once"));
      this.showVerdict(undone ?? greyVerdict(), {});
    } catch (error) {
      this.showFailure(error, {});
    }
  }

  private async undoLatest(guest: Guest, reason: string): Promise<void> {
    try {
      this.showVerdict(await this.doorState.undoLatest(guest, reason), {});
    } catch (error) {
      this.showFailure(error, {});
    }
  }

  /** Undo a check-in that counted too many guests, then check in the right number. */
  private async correct(verdict: Verdict, request: ScanRequest, arrivals: number): Promise<void> {
    if (arrivals >= Math.abs(verdict.admitted + verdict.moved)) return;
    try {
      const undone = await this.doorState.undo(verdict, this.words.say("reason.fewer"));
      if (undone) await this.decide({ ...request, arrivals }, verdict);
      else this.showVerdict(greyVerdict(), {});
    } catch (error) {
      this.showFailure(error, {});
    }
  }

  private async report(guest: Guest, action: "left" | "no-show" | "take-back"): Promise<void> {
    try {
      this.doorState.updateGuest(await this.box.report(guest.id, action));
    } catch (error) {
      this.showFailure(error, {});
    }
  }

  private setLeaving(isLeaving: boolean): void {
    this.isLeaving = isLeaving;
    byId("exit-mode").setAttribute("aria-pressed", String(isLeaving));
    byId("exit-note").hidden = !isLeaving;
    document.body.dataset["direction"] = isLeaving ? "out" : "in";
  }

  private openCode(): void {
    byId<HTMLInputElement>("code").value = "";
    byId<HTMLDialogElement>("code-sheet").showModal();
    byId("code").focus();
  }

  private submitCode(): Promise<void> {
    const code = byId<HTMLInputElement>("code").value.trim();
    return runOnce("code-go", async () => {
      if (!code) return;
      await this.queue.add({ code });
      byId<HTMLDialogElement>("code-sheet").close();
    });
  }

  private async readPhoto(input: HTMLInputElement): Promise<void> {
    const file = input.files?.[0];
    input.value = "";
    const picture = file ? await photoPixels(file) : null;
    const [code] = picture ? await this.reader.read(picture, true) : [];
    showText(byId("photo-problem"), code ? null : this.words.say(
      this.reader.works ? "photo.empty" : "camera.failed",
    ));
    if (code) void this.queue.add({ code });
  }

  private async keepScreenOn(): Promise<void> {
    if (document.visibilityState !== "visible" || !this.doorState.me) return;
    if (this.wakeLock && !this.wakeLock.released) return;
    this.wakeLock = (await navigator.wakeLock?.request("screen").catch(() => null)) ?? null;
  }

  private async unpair(): Promise<void> {
    // If the box is unreachable, unpair this phone anyway. Staff can revoke it in the portal.
    await this.box.unpair().catch(() => undefined);
    await this.endPairing(null);
  }

  /**
   * End the pairing and delete the evening's data from this phone. With `keepQueue`, unsent scans
   * are kept and sent after the next pairing. Use it for phones that lost their cookie and were not
   * revoked.
   */
  private async endPairing(why: string | null, keepQueue = false): Promise<void> {
    if (!this.connection) return;
    this.connection.stop();
    this.connection = null;
    this.setLeaving(false);
    this.camera.stop();
    closeSheets();
    const { storage } = this;
    // Use the counts in memory. After a revocation, the browser's storage is already empty, because
    // the box's response has the header Clear-Site-Data.
    const pending = this.pendingText(this.doorState, keepQueue);
    if (!keepQueue) this.doorState.forgetPending();
    this.doorState = this.newDoorState();
    await this.wakeLock?.release().catch(() => undefined);
    this.recent.clear();
    this.draw();
    for (const id of ["guests", "picks", "verdict-facts"]) byId(id).replaceChildren();
    for (const id of ["verdict-table", "verdict-note", "guest-name", "guest-facts", "guest-note",
      "conflict-text"]) byId(id).textContent = "";
    byId("bar").hidden = byId("stage").hidden = byId("dock").hidden = true;
    showText(byId("alone-text"), null);
    await (keepQueue ? storage.clearEvening() : storage.wipe());
    await removeAppShell(this.environment, this.data["start"] ?? "");
    this.pairing.open(why && [this.words.say(why), pending].filter(Boolean).join(" "));
  }

  /** Return the message about scans that the box has not received. */
  private pendingText({ pendingScans, pendingPeople }: DoorState, areKept: boolean): string {
    if (areKept) return pendingScans ? this.words.say("pair.kept", { count: pendingScans }) : "";
    const people = this.words.guests(pendingPeople);
    return pendingPeople ? this.words.say("pair.lost", { people }) : "";
  }

  private explainInsecure(): void {
    byId("stage").hidden = false;
    this.cameraView.fail("insecure");
  }
}

/** Return a neutral verdict for errors that are not about the guest. */
function greyVerdict(): Verdict {
  return {
    scanId: "", result: "refused", colour: "grey", say: null, overridable: false, admitted: 0,
    moved: 0, reservation: null, firstCheckIn: null,
  };
}
