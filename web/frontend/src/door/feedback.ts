/** Play sounds and vibrations for verdicts. Each colour has its own melody and rhythm. */
import type { Colour } from "./types";

interface Note {
  hertz: number;
  at: number;
  seconds: number;
  wave: OscillatorType;
}

const MELODIES: Readonly<Record<Colour, readonly Note[]>> = {
  green: [
    { hertz: 880, at: 0, seconds: 0.1, wave: "sine" },
    { hertz: 1320, at: 0.1, seconds: 0.18, wave: "sine" },
  ],
  amber: [
    { hertz: 587, at: 0, seconds: 0.14, wave: "triangle" },
    { hertz: 587, at: 0.2, seconds: 0.14, wave: "triangle" },
    { hertz: 587, at: 0.4, seconds: 0.14, wave: "triangle" },
  ],
  red: [
    { hertz: 220, at: 0, seconds: 0.28, wave: "square" },
    { hertz: 165, at: 0.3, seconds: 0.45, wave: "square" },
  ],
  grey: [{ hertz: 392, at: 0, seconds: 0.12, wave: "triangle" }],
};
const VIBRATIONS: Readonly<Record<Colour, number[]>> = {
  green: [70],
  amber: [70, 80, 70, 80, 70],
  red: [350, 100, 350],
  grey: [30],
};
const LATEST_MS = 400; // a later sound could be mistaken for the next guest's verdict
const LOUDNESS = { sine: 0.5, triangle: 0.6, square: 0.22 } as Record<OscillatorType, number>;

export class Feedback {
  private context: AudioContext | null = null;
  sound = readSwitch("sound");
  vibration = readSwitch("vibration");

  constructor() {
    // Browsers allow sound only after a touch or key press.
    for (const kind of ["pointerdown", "keydown"]) addEventListener(kind, () => this.resumeAudio());
    document.addEventListener("visibilitychange", () => this.context && this.resumeAudio());
  }

  play(colour: Colour): void {
    if (this.vibration) navigator.vibrate?.(VIBRATIONS[colour]);
    if (this.sound) void this.playMelody(MELODIES[colour]);
  }

  setEnabled(what: "sound" | "vibration", on: boolean): void {
    this[what] = on;
    try {
      localStorage.setItem(`venuebox-door-${what}`, on ? "on" : "off");
    } catch {
      // Without storage, the choice lasts until the page is closed.
    }
  }

  private resumeAudio(): void {
    this.context ??= "AudioContext" in window ? new AudioContext() : null;
    if (this.context?.state !== "running") void this.context?.resume().catch(() => undefined);
  }

  /** Play a melody. Resume the audio first, because phone calls suspend it. */
  private async playMelody(melody: readonly Note[]): Promise<void> {
    const { context } = this;
    if (!context) return;
    const asked = performance.now();
    if (context.state !== "running") await context.resume().catch(() => undefined);
    const isLate = performance.now() - asked >= LATEST_MS;
    if (context.state === "running" && !isLate) playNotes(context, melody);
  }
}

function playNotes(context: AudioContext, melody: readonly Note[]): void {
  for (const { hertz, at, seconds, wave } of melody) {
    const tone = new OscillatorNode(context, { type: wave, frequency: hertz });
    const volume = new GainNode(context, { gain: 0 });
    const starts = context.currentTime + at;
    volume.gain.setValueAtTime(0, starts);
    volume.gain.linearRampToValueAtTime(LOUDNESS[wave] ?? 0.4, starts + 0.01);
    volume.gain.setTargetAtTime(0, starts + seconds - 0.03, 0.02);
    tone.connect(volume).connect(context.destination);
    tone.start(starts);
    tone.stop(starts + seconds + 0.1);
  }
}

function readSwitch(what: string): boolean {
  try {
    return localStorage.getItem(`venuebox-door-${what}`) !== "off";
  } catch {
    return true;
  }
}
