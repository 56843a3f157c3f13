/** The code reader in its worker: one picture at a time, the newest. */

type Answer = { id: number; texts: string[] } | { failed: string };

export class Reader {
  private worker: Worker | null = null;
  private waiting = new Map<number, (texts: string[]) => void>();
  private next = 1;
  failed: () => void = () => undefined;

  constructor(
    private readonly script: string,
    private readonly wasm: string,
  ) {}

  /** Load the reader before the first picture is there. */
  warm(): void {
    if (this.worker) return;
    this.worker = new Worker(this.script);
    this.worker.onmessage = ({ data }: MessageEvent<Answer>) => this.hear(data);
    this.worker.onerror = () => this.fail();
    this.worker.postMessage({ wasm: this.wasm });
  }

  get busy(): boolean {
    return this.waiting.size > 0;
  }

  /** The texts of the codes in a picture, which is used up. `thorough`: for a still photo. */
  read(picture: ImageBitmap | ImageData, thorough = false): Promise<string[]> {
    this.warm();
    const id = this.next++;
    const transfer = picture instanceof ImageData ? [picture.data.buffer] : [picture];
    return new Promise((resolve) => {
      this.waiting.set(id, resolve);
      this.worker?.postMessage({ id, picture, thorough }, transfer);
    });
  }

  private hear(answer: Answer): void {
    if ("failed" in answer) return this.fail();
    this.waiting.get(answer.id)?.(answer.texts);
    this.waiting.delete(answer.id);
  }

  private fail(): void {
    this.worker?.terminate();
    this.worker = null;
    for (const resolve of this.waiting.values()) resolve([]);
    this.waiting.clear();
    this.failed();
  }
}
