/** `text` with 0 to 9 for the digits of Arabic keyboards: Arabic-Indic, and Persian and Urdu ones. */
export function western(text: string): string {
  return text.replace(/[٠-٩۰-۹]/g, (digit) => String(digit.charCodeAt(0) & 15));
}
