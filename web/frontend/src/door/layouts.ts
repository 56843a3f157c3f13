/**
 * What a keyboard-wedge scanner types on a host whose layout is not the scanner's own. The twin of
 * appliance/door/guest_pass.py, for the time when the box is out of reach.
 */

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
  // With Shift, by row.
  ["\u064e", "Q"], ["\u064b", "W"], ["\u064f", "E"], ["\u064c", "R"], ["إ", "Y"], ["‘", "U"],
  ["`", "U"], ["÷", "I"], ["×", "O"], ["؛", "P"], ["\u0650", "A"], ["\u064d", "S"], ["]", "D"],
  ["[", "F"], ["أ", "H"], ["ـ", "J"], ["،", "K"], ["/", "L"], ["~", "Z"], ["\u0652", "X"],
  ["}", "C"], ["{", "V"], ["آ", "N"], ["’", "M"],
  // Lam and alef at once, where the host has a single sign for them.
  ["\ufefb", "B"], ["\ufef5", "B"], ["\ufef7", "G"], ["\ufef9", "T"],
];
const ARABIC: Keys = new Map([...ARABIC_LETTERS, ["'", "M"]]);
const ARABIC_AZERTY: Keys = new Map([...ARABIC_LETTERS, ...AZERTY_DIGITS]);
const SHIFTED_PAIRS: [string, string][] = [["لإ", "T"], ["لأ", "G"], ["لآ", "B"]];
const PAIR = "لا"; // the key B, or G and then H
const MOST_GUESSES = 128;

/** Every text of `length` characters that a scanner may have meant by `text`, likeliest first. */
export function* spellings(text: string, length: number): Generator<string> {
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

/** `typed` with as many pairs read as the key B as make it `length` characters long. */
function* withPairs(typed: string, length: number): Generator<string> {
  const pieces = typed.split(PAIR);
  const keys = typed.length - length;
  if (keys < 0 || keys >= pieces.length) return;
  for (const chosen of combinations(pieces.length - 1, keys)) {
    yield pieces.reduce((all, piece, n) => all + (chosen.has(n) ? "B" : PAIR) + piece);
  }
}

/** Every set of `count` numbers from 1 to `most`, in the order of their first members. */
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
