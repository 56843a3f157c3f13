/**
 * Compare human text in the same way as appliance/core/text.py: with the same list of characters
 * that count as the same, and the same test vectors (tests/vectors/folded.json).
 */
import folding from "../../../../appliance/core/folding.json";

const alike = new Map<string, string>();
for (const [target, characters] of Object.entries(folding.alike)) {
  for (const character of characters) alike.set(character, target);
}
const inWords = new Map<string, string>();
for (const character of folding.separators) inWords.set(character, " ");
for (const character of folding.silent) inWords.set(character, "");

/** Return `text` in a form in which different spellings of the same name are equal. */
export function fold(text: string): string {
  // Some apostrophes are accents on a space, and would be lost in the next step.
  const plain = replaced(text, alike).normalize("NFKD").replace(/[\p{M}\p{Cf}]/gu, "");
  return replaced(plain.toLowerCase(), alike);
}

/**
 * Return the folded words of `text`, without apostrophes. Dashes and other punctuation separate
 * words.
 */
export function words(text: string): string[] {
  return replaced(fold(text), inWords).split(/\s+/).filter(Boolean);
}

/**
 * Whether every word of `query` is part of the words in `text`, or one of `exact`. Both are folded.
 */
export function matches(query: string, text: string, exact: readonly (string | null)[] = []): boolean {
  const all = words(text).join(" ");
  const others = exact.map((one) => words(one ?? "").join(" "));
  return fold(query).split(/\s+/).every((part) => {
    const wanted = words(part).join(" ");
    return all.includes(wanted) || others.includes(wanted);
  });
}

function replaced(text: string, table: ReadonlyMap<string, string>): string {
  return Array.from(text, (character) => table.get(character) ?? character).join("");
}

/** Return `text` with the sign "-" for every dash. */
export function plainDashes(text: string): string {
  return Array.from(text, (sign) => (alike.get(sign) === "-" ? "-" : sign)).join("");
}

/** Replace Arabic-Indic, Persian and Urdu digits with 0 to 9. */
export function westernDigits(text: string): string {
  return text.replace(/[٠-٩۰-۹]/g, (digit) => String(digit.charCodeAt(0) & 15));
}
