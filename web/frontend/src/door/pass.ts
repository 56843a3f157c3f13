/** The guest pass (docs/decisions/guest-pass-and-links.md): the twin of appliance/door/guest_pass.py. */
import { spellings } from "./layouts";

export const TEXT_LENGTH = 139;
const PREFIX = "SVC1";
const FORM = /^SVC1[A-Z2-7]{134}[AIQY]$/; // the last three bits say nothing: they are 0
const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
const SIGNED_BYTES = 20;
const WHOLE_EVENING = 0xffff;
const DAY_MINUTES = 24 * 60;
const DAY_MS = 86_400_000;
const FIRST_DAY = Date.UTC(2020, 0, 1);
export const VERSIONS: Readonly<Record<string, number>> = { live: 0x01, test: 0x81 };

/** A pass as it was read, whoever wrote it: nothing in it is true before its signature is. */
export interface ReadPass {
  version: number;
  kid: number;
  venueTag: string;
  passId: string;
  evening: string;
  slot: string | null;
  guests: number;
  generation: number;
  signed: Uint8Array<ArrayBuffer>;
  signature: Uint8Array<ArrayBuffer>;
}

/** Every pass that `text` may spell, likeliest first: only a signature can tell. */
export function* decodePasses(text: string): Generator<ReadPass> {
  for (const spelling of spellings(text, TEXT_LENGTH)) {
    const read = FORM.test(spelling) ? parse(base32(spelling.slice(PREFIX.length))) : null;
    if (read) yield read;
  }
}

/** Whether `text` begins as ours do, in any layout: a pass, or the ruins of one. */
export function resemblesPass(text: string): boolean {
  const start = [...text.trim()].slice(0, PREFIX.length).join("");
  return [...spellings(start, PREFIX.length)].some((spelling) => spelling.startsWith(PREFIX));
}

function parse(raw: Uint8Array<ArrayBuffer>): ReadPass | null {
  const view = new DataView(raw.buffer);
  const version = view.getUint8(0);
  const slot = view.getUint16(16);
  if (!Object.values(VERSIONS).includes(version)) return null;
  if (slot >= DAY_MINUTES && slot < WHOLE_EVENING) return null;
  return {
    version,
    kid: view.getUint8(1),
    venueTag: hex(raw.subarray(2, 6)),
    passId: hex(raw.subarray(6, 14)),
    evening: new Date(FIRST_DAY + view.getUint16(14) * DAY_MS).toISOString().slice(0, 10),
    slot: slot === WHOLE_EVENING ? null : clock(slot),
    guests: view.getUint8(18),
    generation: view.getUint8(19),
    signed: raw.slice(0, SIGNED_BYTES),
    signature: raw.slice(SIGNED_BYTES),
  };
}

function base32(text: string): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(Math.floor((text.length * 5) / 8));
  let bits = 0;
  let held = 0;
  let at = 0;
  for (const sign of text) {
    held = ((held << 5) | ALPHABET.indexOf(sign)) & 0xfff;
    bits += 5;
    if (bits >= 8) {
      bits -= 8;
      bytes[at++] = (held >> bits) & 0xff;
    }
  }
  return bytes;
}

function hex(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function clock(minutes: number): string {
  const two = (n: number) => String(n).padStart(2, "0");
  return `${two(Math.floor(minutes / 60))}:${two(minutes % 60)}`;
}
