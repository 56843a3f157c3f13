/**
 * Simplify text, so that different spellings of a name are equal. The rules and test vectors are
 * the same as those of appliance/core/text.py.
 */

const ALIKE: Readonly<Record<string, string>> = {
  "ة": "ه", "ى": "ي", "ی": "ي", "ک": "ك", "ٱ": "ا", "ـ": "", "ß": "ss", "ς": "σ",
  "’": "'",
};

/**
 * Return `text` in lower case, without accents, vowel marks, tatweel and invisible characters.
 * Replace letters by their equivalents in ALIKE, and digits by 0 to 9.
 */
export function fold(text: string): string {
  const plain = text.normalize("NFKD").replace(/[\p{M}\p{Cf}]/gu, "").toLowerCase();
  return westernDigits(plain.replace(/[ةىیکٱـßς’]/g, (letter) => ALIKE[letter] ?? letter));
}

/** Replace Arabic-Indic, Persian and Urdu digits with 0 to 9. */
export function westernDigits(text: string): string {
  return text.replace(/[٠-٩۰-۹]/g, (digit) => String(digit.charCodeAt(0) & 15));
}
