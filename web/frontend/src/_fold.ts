/** Text as names are compared: the twin of appliance/core/text.py, held to the same vectors. */

const ALIKE: Readonly<Record<string, string>> = {
  "ة": "ه", "ى": "ي", "ی": "ي", "ک": "ك", "ٱ": "ا", "ـ": "", "ß": "ss", "ς": "σ",
};

/** Without case, accents, vowel signs, tatweel and invisible marks; digits are 0 to 9. */
export function fold(text: string): string {
  const plain = text.normalize("NFKD").replace(/[\p{M}\p{Cf}]/gu, "").toLowerCase();
  return western(plain.replace(/[ةىیکٱـßς]/g, (letter) => ALIKE[letter] ?? letter));
}

/** `text` with 0 to 9 for the digits of Arabic keyboards: Arabic-Indic, and Persian and Urdu ones. */
export function western(text: string): string {
  return text.replace(/[٠-٩۰-۹]/g, (digit) => String(digit.charCodeAt(0) & 15));
}
