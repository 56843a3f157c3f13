/**
 * Decode guest passes and access codes. A pass is recognised even if the keyboard layout of the
 * host changed the characters that a scanner typed. The rules are the same as in
 * appliance/door/guest_pass.py (docs/decisions/guest-pass-and-links.md).
 */
import { plainDashes, westernDigits } from "../shared/text_folding";

export const TEXT_LENGTH = 139;
const PREFIX = "SVC1";
const MOST_PREFIXES = 4; // a scanner sends a code once or twice
// The prefix as each keyboard layout types it.
const TYPED_PREFIX = /(?:SVC|سرؤ|\u064d\{\})[1&١]/g;
const FORM = /^SVC1[A-Z2-7]{135}$/;
const LAST = /[AIQY]$/; // the last three bits are unused and must be 0
const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
const SIGNED_BYTES = 20;
const WHOLE_EVENING = 0xffff;
const DAY_MINUTES = 24 * 60;
const DAY_MS = 86_400_000;
const FIRST_DAY = Date.UTC(2020, 0, 1);
export const VERSIONS: Readonly<Record<string, number>> = { live: 0x01, test: 0x81 };

/** A decoded pass. Do not trust its fields before its signature is verified. */
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

/**
 * Yield every pass that `text` may contain, most likely first. Only the right pass has a valid
 * signature.
 */
export function* decodePasses(text: string): Generator<ReadPass> {
  for (const form of findForms(text)) {
    const read = LAST.test(form) ? parse(base32(form.slice(PREFIX.length))) : null;
    if (read) yield read;
  }
}

/** Whether `text` contains a whole pass in any keyboard layout. It may be forged or damaged. */
export function isPass(text: string): boolean {
  return !findForms(text).next().done;
}

/** Whether `text` contains the prefix of a pass in any keyboard layout, even if the rest is damaged. */
export function resemblesPass(text: string): boolean {
  return withoutBlanks(text).search(TYPED_PREFIX) >= 0;
}

/**
 * Yield the texts in the form of a pass that `text` may contain, most likely first. A pass begins
 * with its prefix, and ends after TEXT_LENGTH characters or before the next prefix.
 */
function* findForms(text: string): Generator<string> {
  const read = withoutBlanks(text);
  const found = [...read.matchAll(TYPED_PREFIX)].slice(0, MOST_PREFIXES);
  const begins = found.map((match) => match.index);
  for (const [n, begin] of begins.entries()) {
    const pieces = new Set([read.slice(begin, begin + TEXT_LENGTH), read.slice(begin, begins[n + 1])]);
    for (const piece of pieces) {
      for (const spelling of spellings(piece, TEXT_LENGTH)) if (FORM.test(spelling)) yield spelling;
    }
  }
}

function withoutBlanks(text: string): string {
  return dropUnseen(text).replace(/\s+/gu, "").toUpperCase();
}

/** Return `text` without characters that nobody sees, with blanks for control characters. */
function dropUnseen(text: string): string {
  return text.replace(/\p{Cf}/gu, "").replace(/\p{Cc}/gu, " ").trim();
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

// Access codes and links

const CODE_MAX = 40; // characters of a code with what stands around it
const CODE_FORM = /^(?:SVC)?([0-9A-Z]{4})$/;
const FRAMED_CODE = /SVC-([0-9A-Z]{4})/;
const LINK = /\/(?:access|claim-guest)\/[A-Za-z0-9_-]+/i;
const AIM_IDENTIFIER = /^\][A-Za-z][0-9A-Za-z]/; // some scanners send it first
const PUNCTUATION = /^[!-/:-@[-`{-~]+|[!-/:-@[-`{-~]+$/g;
const LOOKALIKES: Readonly<Record<string, string>> = {
  "0": "QD", O: "QD", Q: "QD", D: "DQ", "1": "J7", I: "J7", L: "J7", "2": "2Z", Z: "Z2", "5": "5S",
  S: "S5", "6": "6G", G: "G6", "8": "8B", B: "B8", U: "UV", V: "VU",
};

/** Return the code in its stored form `SVC-XXXX`, or null if `text` is not an access code. */
export function parseAccessCode(text: string): string | null {
  if (text.length > CODE_MAX) return null;
  const match = CODE_FORM.exec(readCode(text).replace(/[\s._-]+/g, ""));
  return match ? `SVC-${match[1]}` : null;
}

function readCode(text: string): string {
  const typed = plainDashes(westernDigits(dropUnseen(text)));
  return typed.replace(AIM_IDENTIFIER, "").replace(PUNCTUATION, "").toUpperCase();
}

/** What was read: the code is in `code`. Text is a name or anything else. */
export interface Read {
  kind: "pass" | "link" | "code" | "text";
  code: string | null;
}

/** Classify a scanned or typed text by its form, as `classify` of appliance/door/scan.py does. */
export function classify(text: string): Read {
  const code = parseAccessCode(text);
  if (code !== null) return { kind: "code", code };
  if (isPass(text)) return { kind: "pass", code: null };
  if (LINK.test(dropUnseen(text).replace(/\s+/gu, ""))) return { kind: "link", code: null };
  const framed = FRAMED_CODE.exec(readCode(text));
  return framed ? { kind: "code", code: `SVC-${framed[1]}` } : { kind: "text", code: null };
}

/** Whether `typed` differs from `stored` only in characters that look alike. */
export function isLookalike(typed: string, stored: string): boolean {
  return [...typed].every((sign, n) => {
    const other = stored[n] ?? "";
    return sign === other || (n >= 4 && (LOOKALIKES[sign] ?? "").includes(other));
  });
}

// Keyboard layouts. A keyboard-wedge scanner acts as a US keyboard. On a host with another keyboard
// layout, its keys produce other characters.

type Keys = ReadonlyMap<string, string>;

const AZERTY_DIGITS: [string, string][] = [
  ["&", "1"], ["É", "2"], ['"', "3"], ["'", "4"], ["(", "5"], ["-", "6"], ["§", "6"], ["È", "7"],
  ["_", "8"], ["!", "8"], ["Ç", "9"], ["À", "0"],
];
const AZERTY: Keys = new Map([
  ...AZERTY_DIGITS,
  ["A", "Q"], ["Q", "A"], ["Z", "W"], ["W", "Z"], ["?", "M"], [",", "M"],
]);
const QWERTZ: Keys = new Map([["Y", "Z"], ["Z", "Y"]]);
const ARABIC_LETTERS: [string, string][] = [
  ...pairs("٠١٢٣٤٥٦٧٨٩", "0123456789"),
  ...pairs("ضصثقفغعهخحشسيبلاتنمئءؤرىة", "QWERTYUIOPASDFGHJKLZXCVNM"),
  // Characters typed with Shift, row by row.
  ["\u064e", "Q"], ["\u064b", "W"], ["\u064f", "E"], ["\u064c", "R"], ["إ", "Y"], ["‘", "U"],
  ["`", "U"], ["÷", "I"], ["×", "O"], ["؛", "P"], ["\u0650", "A"], ["\u064d", "S"], ["]", "D"],
  ["[", "F"], ["أ", "H"], ["ـ", "J"], ["،", "K"], ["/", "L"], ["~", "Z"], ["\u0652", "X"],
  ["}", "C"], ["{", "V"], ["آ", "N"], ["’", "M"],
  // Lam with alef as a single character, which some hosts type.
  ["\ufefb", "B"], ["\ufef5", "B"], ["\ufef7", "G"], ["\ufef9", "T"],
];
const ARABIC: Keys = new Map([...ARABIC_LETTERS, ["'", "M"]]);
const ARABIC_AZERTY: Keys = new Map([...ARABIC_LETTERS, ...AZERTY_DIGITS]);
const SHIFTED_PAIRS: [string, string][] = [["لإ", "T"], ["لأ", "G"], ["لآ", "B"]];
const PAIR = "لا"; // typed by the key B, or by the keys G and H
const MOST_GUESSES = 128;

/**
 * Yield every text of `length` characters that a scanner may have read if the host received `text`,
 * most likely first.
 */
function* spellings(text: string, length: number): Generator<string> {
  const typed = text.replace(/\s+/gu, "").toUpperCase();
  if (typed.length === length) {
    yield typed;
    yield translate(typed, AZERTY);
    yield translate(typed, QWERTZ);
  }
  if (/[^\x00-\x7f]/.test(typed)) yield* arabic(typed, length);
}

function* arabic(typed: string, length: number): Generator<string> {
  for (const [pair, key] of SHIFTED_PAIRS) typed = typed.replaceAll(pair, key);
  let guesses = 0;
  for (const guess of withPairs(typed, length)) {
    if (guesses++ === MOST_GUESSES) return;
    const spelling = translate(guess, ARABIC);
    const other = translate(guess, ARABIC_AZERTY);
    yield spelling;
    if (other !== spelling) yield other;
  }
}

/**
 * Yield every text of `length` characters that results if some of the PAIRs in `typed` are replaced
 * by B. Each PAIR was typed with one key (B) or with two keys.
 */
function* withPairs(typed: string, length: number): Generator<string> {
  const pieces = typed.split(PAIR);
  const keys = typed.length - length;
  if (keys < 0 || keys >= pieces.length) return;
  for (const chosen of combinations(pieces.length - 1, keys)) {
    yield pieces.reduce((all, piece, n) => all + (chosen.has(n) ? "B" : PAIR) + piece);
  }
}

/** Yield every set of `count` numbers from 1 to `most`, in lexicographic order. */
function* combinations(most: number, count: number, from = 1): Generator<Set<number>> {
  if (count === 0) yield new Set();
  else {
    for (let first = from; first <= most - count + 1; first++) {
      for (const rest of combinations(most, count - 1, first + 1)) {
        yield new Set([first, ...rest]);
      }
    }
  }
}

function translate(text: string, keys: Keys): string {
  let written = "";
  for (const sign of text) written += keys.get(sign) ?? sign;
  return written;
}

function pairs(signs: string, keys: string): [string, string][] {
  return [...signs].map((sign, n) => [sign, keys[n] ?? ""]);
}
