/** Search for phone numbers, by the rules of appliance/core/phone_numbers.py. */
import { fold } from "./text_folding";

const SEARCHED_MIN = 3; // digits
const WITH_TRUNK_ZERO = 12; // digits of a number with a country code and a 0 after it

/** Whether one of the numbers in `known`, which are separated by spaces, contains `query`. */
export function containsNumber(known: string, query: string): boolean {
  const wanted = variants(query);
  return known.split(" ").some((number) => wanted.some((one) => number.includes(one)));
}

/**
 * Return the digits of a number that is searched for, also without the zeros in front, and without
 * one after a country code, as in "+212 06…".
 */
function variants(query: string): string[] {
  const typed = fold(query).trim();
  if (!/^(?:tel:)?[\d\s+./()#*_-]+$/.test(typed)) return [];
  const digits = typed.replace(/\(\s*0\s*\)/g, "").replace(/\D/g, "");
  const plain = digits.replace(/^0+/, "");
  const found = [digits, plain];
  if (/^(\+|00)/.test(typed) || plain.length >= WITH_TRUNK_ZERO) {
    for (const n of [1, 2, 3]) {
      if (plain[n] === "0") found.push(plain.slice(0, n) + plain.slice(n + 1));
    }
  }
  return digits.length < SEARCHED_MIN ? [] : found.filter((one) => one.length >= SEARCHED_MIN);
}
