/** Reads QR codes out of pictures, away from the page: WebAssembly of the box's own, never a CDN. */
import { prepareZXingModule, readBarcodes, type ReaderOptions, type ReadResult } from "zxing-wasm/reader";

interface Job {
  id: number;
  picture: ImageBitmap | ImageData;
  thorough: boolean;
}

const QUICK: ReaderOptions = {
  formats: ["QRCode"], tryHarder: false, tryRotate: true, tryInvert: false, tryDownscale: true,
  maxNumberOfSymbols: 4,
};
const THOROUGH: ReaderOptions = { ...QUICK, tryHarder: true, tryInvert: true };

// The types of a page and of a worker do not go together: these two are all that is needed.
const post = postMessage as unknown as (answer: unknown) => void;

let canvas: OffscreenCanvas | null = null;

/** The pixels of a picture. A bitmap comes only from browsers whose workers can draw. */
function pixels(picture: ImageBitmap | ImageData): ImageData {
  if (picture instanceof ImageData) return picture;
  const { width, height } = picture;
  if (canvas?.width !== width || canvas.height !== height) {
    canvas = new OffscreenCanvas(width, height);
  }
  const context = canvas.getContext("2d", { willReadFrequently: true });
  if (!context) throw new Error("this worker cannot draw");
  context.drawImage(picture, 0, 0);
  picture.close();
  return context.getImageData(0, 0, width, height);
}

/** How far the middle of a code is from the middle of its picture, in pixels. */
function distance({ position }: ReadResult, { width, height }: ImageData): number {
  const corners = [position.topLeft, position.topRight, position.bottomLeft, position.bottomRight];
  const x = corners.reduce((sum, corner) => sum + corner.x, 0) / corners.length;
  const y = corners.reduce((sum, corner) => sum + corner.y, 0) / corners.length;
  return Math.hypot(x - width / 2, y - height / 2);
}

/** The texts of a picture, the nearest to its middle first. */
async function read({ id, picture, thorough }: Job): Promise<void> {
  const image = pixels(picture);
  const found = await readBarcodes(image, thorough ? THOROUGH : QUICK);
  const codes = found.filter((one) => one.isValid).map((one) => ({ at: distance(one, image), one }));
  post({ id, texts: codes.sort((a, b) => a.at - b.at).map(({ one }) => one.text) });
}

async function prepare(wasm: string): Promise<void> {
  const overrides = { locateFile: () => wasm };
  await prepareZXingModule({ overrides, fireImmediately: true });
}

addEventListener("message", ({ data }: MessageEvent<Job | { wasm: string }>) => {
  const done = "wasm" in data ? prepare(data.wasm) : read(data);
  done.catch((fault: unknown) => post({ failed: String(fault) }));
});
