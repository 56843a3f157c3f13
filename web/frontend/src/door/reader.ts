/** The code reader in its worker: one picture at a time, the newest. */

type Answer = { id: number; texts: string[] } | { failed: string };

const PATIENCE_MS = 8000;
const AWAKE_MS = 1000; // what a worker gets at the end, for page and worker may have slept meanwhile
const RESTS_MS = [500, 1000, 2000, 4000, 8000, 15_000];

export class Reader {
  private worker: Worker | null = null;
  private waiting = new Map<number, (texts: string[]) => void>();
  private next = 1;
  private faults = 0;
  private resting: Promise<void> | null = null;
  changed: () => void = () => undefined;

  constructor(
    private readonly script: string,
    private readonly wasm: string,
  ) {}

  /** False from a fault until a picture has been read again. */
  get works(): boolean {
    return this.faults === 0;
  }

  /** Load the reader before the first picture is there. */
  warm(): void {
    if (this.worker) return;
    const worker = new Worker(this.script);
    this.worker = worker;
    worker.onmessage = ({ data }: MessageEvent<Answer>) => this.hear(data);
    worker.onerror = () => this.fail(worker);
    worker.postMessage({ wasm: this.wasm });
  }

  /** The texts in a picture, which is used up, the nearest to its middle first. `thorough`: for a still photo. */
  async read(picture: ImageBitmap | ImageData, thorough = false): Promise<string[]> {
    if (this.resting && !thorough) {
      if (!(picture instanceof ImageData)) picture.close();
      await this.resting; // whoever was in that picture may have gone: the next one is read
      return [];
    }
    this.warm();
    const { worker } = this;
    const id = this.next++;
    const transfer = picture instanceof ImageData ? [picture.data.buffer] : [picture];
    let late = setTimeout(() => {
      late = setTimeout(() => this.fail(worker), AWAKE_MS);
    }, PATIENCE_MS);
    const texts = await new Promise<string[]>((resolve) => {
      this.waiting.set(id, resolve);
      worker?.postMessage({ id, picture, thorough }, transfer);
    });
    clearTimeout(late);
    return texts;
  }

  private hear(answer: Answer): void {
    if ("failed" in answer) return this.fail(this.worker);
    this.waiting.get(answer.id)?.(answer.texts);
    this.waiting.delete(answer.id);
    if (this.works) return;
    this.faults = 0;
    this.changed();
  }

  /** Another worker is tried after a rest, each time a longer one: no phone is kept busy by it. */
  private fail(worker: Worker | null): void {
    if (!worker || worker !== this.worker) return;
    worker.terminate();
    this.worker = null;
    const rest = RESTS_MS[Math.min(this.faults++, RESTS_MS.length - 1)];
    this.resting = new Promise<void>((done) => setTimeout(done, rest)).then(() => {
      this.resting = null;
    });
    for (const resolve of this.waiting.values()) resolve([]);
    this.waiting.clear();
    this.changed();
  }
}
