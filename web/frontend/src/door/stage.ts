/** The camera's screen: its picture, or what stands in its place and why. */
import type { Camera, CameraFault } from "./camera";
import { part, show } from "./dom";
import type { Words } from "./words";

export class Stage {
  private fault: CameraFault | null = null;
  private lit = false;

  constructor(
    private readonly words: Words,
    private readonly camera: Camera,
  ) {
    part("start").addEventListener("click", () => void this.start());
    part("turn").addEventListener("click", () => void camera.turn());
    part("torch").addEventListener("click", () => void this.light());
    camera.changed = () => this.draw();
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
    if (on) this.fault = null;
    part("video").hidden = part("peek").hidden = part("frame").hidden = part("aim").hidden = !on;
    part("ready").hidden = on;
    part("torch").hidden = !on || !this.camera.hasLight;
    if (!on) this.drawReady();
    else void this.camera.hasOther().then((more) => (part("turn").hidden = !more));
    if (!on) part("turn").hidden = true;
  }

  private drawReady(): void {
    const { words, fault } = this;
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

  private async light(): Promise<void> {
    this.lit = !this.lit;
    part("torch").setAttribute("aria-pressed", String(this.lit));
    await this.camera.light(this.lit).catch(() => undefined);
  }
}
