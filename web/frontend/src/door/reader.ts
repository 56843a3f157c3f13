/** The QR code reader. Its worker reads one picture at a time. */

type Answer = { id: number; texts: string[] } | { failed: string };

const TIMEOUT_MS = 8000;
const GRACE_MS = 1000; // extra time for the worker if the phone suspended the page and the worker
const RESTART_MS = [500, 1000, 2000, 4000, 8000, 15_000];

export class Reader {
  private worker: Worker | null = null;
  private waiting = new Map<number, (texts: string[]) => void>();
  private next = 1;
  private faults = 0;
  private restarting: Promise<void> | null = null;
  changed: () => void = () => undefined;

  constructor(
    private readonly script: string,
    private readonly wasm: string,
  ) {}

  /** False after a failure, until the next picture has been read. */
  get works(): boolean {
    return this.faults === 0;
  }

  /** Start the worker if it is not running. Call this early, so that the first read is fast. */
  load(): void {
    if (this.worker) return;
    const worker = new Worker(this.script);
    this.worker = worker;
    worker.onmessage = ({ data }: MessageEvent<Answer>) => this.onMessage(data);
    worker.onerror = () => this.fail(worker);
    worker.postMessage({ wasm: this.wasm });
  }

  /**
   * Return the texts of the codes in a picture, the code nearest to the centre first. The picture
   * cannot be used afterwards. A `thorough` read is slower, but also finds codes that are hard to
   * read. After a failure, a thorough read starts the worker at once. Other reads wait until the
   * restart delay has passed and then return no texts.
   */
  async read(picture: ImageBitmap | ImageData, thorough = false): Promise<string[]> {
    if (this.restarting && !thorough) {
      if (!(picture instanceof ImageData)) picture.close();
      await this.restarting; // by then, this picture is outdated
      return [];
    }
    this.load();
    const { worker } = this;
    const id = this.next++;
    const transfer = picture instanceof ImageData ? [picture.data.buffer] : [picture];
    let late = setTimeout(() => {
      late = setTimeout(() => this.fail(worker), GRACE_MS);
    }, TIMEOUT_MS);
    const texts = await new Promise<string[]>((resolve) => {
      this.waiting.set(id, resolve);
      worker?.postMessage({ id, picture, thorough }, transfer);
    });
    clearTimeout(late);
    return texts;
  }

  private onMessage(answer: Answer): void {
    if ("failed" in answer) return this.fail(this.worker);
    this.waiting.get(answer.id)?.(answer.texts);
    this.waiting.delete(answer.id);
    if (this.works) return;
    this.faults = 0;
    this.changed();
  }

  /** End the worker. The next worker starts after a delay that grows with each failure. */
  private fail(worker: Worker | null): void {
    if (!worker || worker !== this.worker) return;
    worker.terminate();
    this.worker = null;
    const delay = RESTART_MS[Math.min(this.faults++, RESTART_MS.length - 1)];
    this.restarting = new Promise<void>((done) => setTimeout(done, delay)).then(() => {
      this.restarting = null;
    });
    for (const resolve of this.waiting.values()) resolve([]);
    this.waiting.clear();
    this.changed();
  }
}
