/**
 * Draw the app's icon as PNG, with the shapes of web/pictures/icon.svg. Drawing it here needs no
 * image tools. The background fills the square, so that round, rounded and square masks all fit.
 */
import { deflateSync } from "node:zlib";

const GROUND = [0xb4, 0x53, 0x2a];
const WHITE = [0xff, 0xff, 0xff];
const SAMPLES = 4; // per axis and pixel, for smooth edges

/** The colour at a point of the 48 × 48 drawing. */
function colourAt(x, y) {
  const [dx, dy] = [Math.abs(x - 24), Math.abs(y - 24)];
  if (Math.hypot(dx, dy) < 6) return GROUND;
  return Math.max(dx, dy) < 11 || dx + dy < 15.6 ? WHITE : GROUND;
}

function pixel(size, column, row) {
  const sum = [0, 0, 0];
  for (let n = 0; n < SAMPLES * SAMPLES; n++) {
    const x = column + ((n % SAMPLES) + 0.5) / SAMPLES;
    const y = row + (Math.floor(n / SAMPLES) + 0.5) / SAMPLES;
    colourAt((x * 48) / size, (y * 48) / size).forEach((part, at) => (sum[at] += part));
  }
  return sum.map((part) => Math.round(part / (SAMPLES * SAMPLES)));
}

/** The bytes of the icon, `size` pixels on a side. */
export function icon(size) {
  const rows = Buffer.alloc(size * (1 + size * 3));
  for (let row = 0; row < size; row++) {
    for (let column = 0; column < size; column++) {
      rows.set(pixel(size, column, row), row * (1 + size * 3) + 1 + column * 3);
    }
  }
  const head = Buffer.alloc(13);
  head.writeUInt32BE(size, 0);
  head.writeUInt32BE(size, 4);
  head.set([8, 2], 8); // 8 bits, RGB
  return Buffer.concat([
    Buffer.from("\x89PNG\r\n\x1a\n", "latin1"),
    chunk("IHDR", head),
    chunk("IDAT", deflateSync(rows, { level: 9 })),
    chunk("IEND", Buffer.alloc(0)),
  ]);
}

function chunk(name, data) {
  const body = Buffer.concat([Buffer.from(name, "latin1"), data]);
  const framed = Buffer.alloc(body.length + 8);
  framed.writeUInt32BE(data.length, 0);
  body.copy(framed, 4);
  framed.writeUInt32BE(crc32(body), body.length + 4);
  return framed;
}

function crc32(bytes) {
  let crc = ~0;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (0xedb88320 & -(crc & 1));
  }
  return ~crc >>> 0;
}
