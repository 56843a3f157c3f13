/** The camera. It starts after a tap, restarts after the lock screen and is read frame by frame. */
import type { Reader } from "./reader";

export type CameraFault = "refused" | "none" | "busy" | "failed" | "insecure";

const LONGEST_SIDE = 960; // in pixels; enough for a QR code with 49 modules per side
// Every fourth frame is read thoroughly, to find small and inverted codes. This takes longer.
const THOROUGH_EVERY = 4;
const THOROUGH_SIDE = 1280;
const IDLE_AFTER_MS = 5000; // after this time without a code, read fewer frames to save power
const IDLE_PAUSE_MS = 100;
const WANTED = { width: { ideal: 1280 }, height: { ideal: 720 }, frameRate: { ideal: 30 } };
const canDrawInWorker = "OffscreenCanvas" in globalThis && "createImageBitmap" in globalThis;

export class Camera {
  private stream: MediaStream | null = null;
  private device: string | null = null;
  private wanted = false;
  private starting: Promise<void> | null = null;
  private canvas: HTMLCanvasElement | null = null;
  private currentRun = 0;
  changed: () => void = () => undefined;

  constructor(
    private readonly video: HTMLVideoElement,
    private readonly peek: HTMLVideoElement,
    private readonly reader: Reader,
    private readonly found: (codes: string[]) => void,
    private readonly failed: (fault: CameraFault) => void,
  ) {
    document.addEventListener("visibilitychange", () => {
      if (document.visibilityState === "hidden") this.release();
      else if (this.wanted) void this.start();
    });
  }

  get isOn(): boolean {
    return this.stream !== null;
  }

  start(): Promise<void> {
    this.starting ??= this.open().finally(() => {
      this.starting = null;
    });
    return this.starting;
  }

  stop(): void {
    this.wanted = false;
    this.release();
  }

  /** Switch to this phone's next camera. */
  async switchCamera(): Promise<void> {
    const ids = (await cameras()).map((camera) => camera.deviceId);
    const now = this.track?.getSettings().deviceId ?? "";
    this.device = ids[(ids.indexOf(now) + 1) % ids.length] ?? null;
    this.release();
    await this.start();
  }

  get hasTorch(): boolean {
    return Boolean((this.track?.getCapabilities?.() as { torch?: boolean } | undefined)?.torch);
  }

  async setTorch(on: boolean): Promise<void> {
    await this.track?.applyConstraints({ advanced: [{ torch: on } as MediaTrackConstraintSet] });
  }

  async hasSeveral(): Promise<boolean> {
    return (await cameras()).length > 1;
  }

  private get track(): MediaStreamTrack | undefined {
    return this.stream?.getVideoTracks()[0];
  }

  private async open(): Promise<void> {
    this.wanted = true;
    if (!isSecureContext || !("mediaDevices" in navigator)) return this.failed("insecure");
    this.reader.load();
    this.release();
    try {
      this.stream = await navigator.mediaDevices.getUserMedia({
        audio: false,
        video: this.device
          ? { ...WANTED, deviceId: { exact: this.device } }
          : { ...WANTED, facingMode: { ideal: "environment" } },
      });
    } catch (fault) {
      this.device = null;
      return this.failed(faultOf(fault));
    }
    // A phone call or another app can take the camera while the page stays visible.
    this.track?.addEventListener("ended", () => this.onEnded());
    this.video.srcObject = this.peek.srcObject = this.stream;
    await Promise.allSettled([this.video.play(), this.peek.play()]);
    this.changed();
    void this.readFrames(++this.currentRun);
  }

  private onEnded(): void {
    this.release();
    if (document.visibilityState === "visible") this.failed("busy");
  }

  private release(): void {
    this.currentRun += 1;
    for (const track of this.stream?.getTracks() ?? []) track.stop();
    this.stream = null;
    this.video.srcObject = this.peek.srcObject = null;
    this.changed();
  }

  private async readFrames(run: number): Promise<void> {
    let foundAt = performance.now();
    let isThorough = false;
    for (let frames = 1; this.currentRun === run; frames++) {
      const isIdle = performance.now() - foundAt > IDLE_AFTER_MS;
      if (isIdle) await new Promise((done) => setTimeout(done, IDLE_PAUSE_MS));
      await nextFrame(this.video);
      const frame = this.currentRun === run ? await this.grabFrame(isThorough) : null;
      if (!frame) continue;
      const texts = await this.reader.read(frame, isThorough);
      if (this.currentRun === run) this.found(texts);
      // If a thorough read finds a code, read the next frame thoroughly too. A quick read could
      // miss the code, and the app would then assume that the guest has taken it away.
      if (texts.length > 0) foundAt = performance.now();
      else isThorough = frames % THOROUGH_EVERY === 0 && this.reader.works;
    }
  }

  private async grabFrame(isThorough: boolean): Promise<ImageBitmap | ImageData | null> {
    const { videoWidth, videoHeight } = this.video;
    if (!videoWidth) return null;
    const longest = isThorough ? THOROUGH_SIDE : LONGEST_SIDE;
    const scale = Math.min(1, longest / Math.max(videoWidth, videoHeight));
    const width = Math.round(videoWidth * scale);
    const height = Math.round(videoHeight * scale);
    if (canDrawInWorker) {
      const size = { resizeWidth: width, resizeHeight: height, resizeQuality: "low" } as const;
      return createImageBitmap(this.video, size).catch(() => null);
    }
    this.canvas ??= document.createElement("canvas");
    return pixels(this.canvas, this.video, width, height);
  }
}

/** Return a photo's pixels, scaled to at most `longest` per side, or null if it is unreadable. */
export async function photoPixels(file: File, longest = 2000): Promise<ImageData | null> {
  const image = new Image();
  image.src = URL.createObjectURL(file);
  try {
    await image.decode();
    const scale = Math.min(1, longest / Math.max(image.naturalWidth, image.naturalHeight));
    const width = Math.round(image.naturalWidth * scale);
    const height = Math.round(image.naturalHeight * scale);
    return pixels(document.createElement("canvas"), image, width, height);
  } catch {
    return null;
  } finally {
    URL.revokeObjectURL(image.src);
  }
}

function pixels(
  canvas: HTMLCanvasElement, source: CanvasImageSource, width: number, height: number,
): ImageData | null {
  canvas.width = width;
  canvas.height = height;
  const context = canvas.getContext("2d", { willReadFrequently: true });
  context?.drawImage(source, 0, 0, width, height);
  return context?.getImageData(0, 0, width, height) ?? null;
}

function nextFrame(video: HTMLVideoElement): Promise<void> {
  return new Promise((resolve) => {
    const late = setTimeout(resolve, 500); // a hidden video delivers no frames
    const done = () => {
      clearTimeout(late);
      resolve();
    };
    if ("requestVideoFrameCallback" in video) video.requestVideoFrameCallback(done);
    else setTimeout(done, 33);
  });
}

async function cameras(): Promise<MediaDeviceInfo[]> {
  const devices = await navigator.mediaDevices.enumerateDevices().catch(() => []);
  return devices.filter((device) => device.kind === "videoinput");
}

function faultOf(fault: unknown): CameraFault {
  const name = fault instanceof DOMException ? fault.name : "";
  if (name === "NotAllowedError" || name === "SecurityError") return "refused";
  if (name === "NotFoundError" || name === "OverconstrainedError") return "none";
  return name === "NotReadableError" || name === "AbortError" ? "busy" : "failed";
}
