/** The camera's screen: its picture, or what stands in its place and why. */
import type { Camera, CameraFault } from "./camera";
import { part, show } from "./dom";
import type { Reader } from "./reader";
import type { Words } from "./words";

export class Stage {
  private fault: CameraFault | null = null;
  private lit = false;

  constructor(
    private readonly words: Words,
    private readonly camera: Camera,
    private readonly reader: Reader,
  ) {
    part("start").addEventListener("click", () => void this.start());
    part("turn").addEventListener("click", () => void camera.turn());
    part("torch").addEventListener("click", () => void this.light(!this.lit));
    camera.changed = () => {
      this.draw();
      // The lock screen puts the light out, and nobody but the doorman wants it out.
      if (this.lit && camera.hasLight) void this.light(true);
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
    part("video").hidden = part("peek").hidden = !on;
    part("frame").hidden = part("aim").hidden = !on || !reads;
    part("misread").hidden = !on || reads;
    part("ready").hidden = on;
    part("torch").hidden = !on || !this.camera.hasLight;
    if (!on) this.drawReady();
    else void this.camera.hasOther().then((more) => (part("turn").hidden = !more));
    if (!on) part("turn").hidden = true;
  }

  private drawReady(): void {
    const { words } = this;
    const fault = this.fault ?? (this.reader.works ? null : "failed");
    const texts = fault === "insecure" ? "insecure" : fault ? `camera.${fault}` : null;
    part("ready").dataset["fault"] = fault ?? "";
    show(part("ready-title"), texts && words.say(texts === "insecure" ? "insecure.title" : texts));
    part("ready-help").textContent = words.say(texts ? `${texts}.help` : "start.help");
    part("start-word").textContent = words.say(fault ? "retry" : "start");
    part("start").hidden = fault === "insecure";
    const link = part<HTMLAnchorElement>("secure-link");
    const secure = document.body.dataset["secure"] ?? "";
    link.hidden = fault !== "insecure" || !secure.startsWith("https:");
    link.href = link.textContent = secure;
    part("photo-label").hidden = fault === null;
  }

  private async light(on: boolean): Promise<void> {
    this.lit = await this.camera.light(on).then(() => on, () => false);
    part("torch").setAttribute("aria-pressed", String(this.lit));
  }
}
