/** The worker that reads QR codes. It uses a WebAssembly module, which it loads from the box. */
import {
  prepareZXingModule, readBarcodes, type ReaderOptions, type ReadResult,
} from "zxing-wasm/reader";

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

// The type libraries of pages and workers conflict, so the worker's postMessage is declared here.
const post = postMessage as unknown as (answer: unknown) => void;

let canvas: OffscreenCanvas | null = null;

/** Return a picture's pixels. The page sends bitmaps only if the browser has OffscreenCanvas. */
function pixels(picture: ImageBitmap | ImageData): ImageData {
  if (picture instanceof ImageData) return picture;
  const { width, height } = picture;
  if (canvas?.width !== width || canvas.height !== height) {
    canvas = new OffscreenCanvas(width, height);
  }
  const context = canvas.getContext("2d", { willReadFrequently: true });
  if (!context) throw new Error("the worker's canvas has no 2D context");
  context.drawImage(picture, 0, 0);
  picture.close();
  return context.getImageData(0, 0, width, height);
}

/** Return the distance in pixels between a code's centre and the picture's centre. */
function distance({ position }: ReadResult, { width, height }: ImageData): number {
  const corners = [position.topLeft, position.topRight, position.bottomLeft, position.bottomRight];
  const x = corners.reduce((sum, corner) => sum + corner.x, 0) / corners.length;
  const y = corners.reduce((sum, corner) => sum + corner.y, 0) / corners.length;
  return Math.hypot(x - width / 2, y - height / 2);
}

/** Post the texts of the codes in a picture. The code nearest to the centre comes first. */
async function read({ id, picture, thorough }: Job): Promise<void> {
  const image = pixels(picture);
  const found = await readBarcodes(image, thorough ? THOROUGH : QUICK);
  const codes = found
    .filter((code) => code.isValid)
    .map((code) => ({ distance: distance(code, image), text: code.text }));
  codes.sort((a, b) => a.distance - b.distance);
  post({ id, texts: codes.map((code) => code.text) });
}

async function prepare(wasm: string): Promise<void> {
  const overrides = { locateFile: () => wasm };
  await prepareZXingModule({ overrides, fireImmediately: true });
}

addEventListener("message", ({ data }: MessageEvent<Job | { wasm: string }>) => {
  const done = "wasm" in data ? prepare(data.wasm) : read(data);
  done.catch((fault: unknown) => post({ failed: String(fault) }));
});
