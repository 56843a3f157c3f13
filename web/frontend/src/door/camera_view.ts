/**
 * The camera screen. It shows the video. If there is no video, it shows a start button and, after
 * an error, the reason.
 */
import type { Camera, CameraFault } from "./camera";
import { byId, showText } from "./dom";
import type { Reader } from "./reader";
import type { Words } from "./words";

export class CameraView {
  private fault: CameraFault | null = null;
  private lit = false;

  constructor(
    private readonly words: Words,
    private readonly camera: Camera,
    private readonly reader: Reader,
  ) {
    byId("start").addEventListener("click", () => void this.start());
    byId("turn").addEventListener("click", () => void camera.switchCamera());
    byId("torch").addEventListener("click", () => void this.setTorch(!this.lit));
    camera.changed = () => {
      this.draw();
      // The lock screen turned the torch off, so turn it on again.
      if (this.lit && camera.hasTorch) void this.setTorch(true);
    };
    reader.changed = () => this.draw();
  }

  async start(): Promise<void> {
    this.fault = null;
    await this.camera.start();
  }

  fail(fault: CameraFault): void {
    this.fault = fault;
    this.draw();
  }

  draw(): void {
    const on = this.camera.isOn;
    const reads = this.reader.works;
    if (on) this.fault = null;
    byId("video").hidden = byId("peek").hidden = !on;
    byId("frame").hidden = byId("aim").hidden = !on || !reads;
    byId("misread").hidden = !on || reads;
    byId("ready").hidden = on;
    byId("torch").hidden = !on || !this.camera.hasTorch;
    if (!on) this.drawPlaceholder();
    else void this.camera.hasSeveral().then((more) => (byId("turn").hidden = !more));
    if (!on) byId("turn").hidden = true;
    const isLost = this.fault === "busy"; // this notice also appears above a full-screen verdict
    showText(byId("camera-lost"), isLost ? this.words.say("camera.busy") : null);
  }

  private drawPlaceholder(): void {
    const { words } = this;
    const fault = this.fault ?? (this.reader.works ? null : "failed");
    const texts = fault === "insecure" ? "insecure" : fault ? `camera.${fault}` : null;
    byId("ready").dataset["fault"] = fault ?? "";
    const title = texts === "insecure" ? "insecure.title" : texts;
    showText(byId("ready-title"), title && words.say(title));
    byId("ready-help").textContent = words.say(texts ? `${texts}.help` : "start.help");
    byId("start-word").textContent = words.say(fault ? "retry" : "start");
    byId("start").hidden = fault === "insecure";
    const link = byId<HTMLAnchorElement>("secure-link");
    const secure = document.body.dataset["secure"] ?? "";
    link.hidden = fault !== "insecure" || !secure.startsWith("https:");
    link.href = link.textContent = secure;
    byId("photo-label").hidden = fault === null;
  }

  private async setTorch(on: boolean): Promise<void> {
    this.lit = await this.camera.setTorch(on).then(() => on, () => false);
    byId("torch").setAttribute("aria-pressed", String(this.lit));
  }
}
