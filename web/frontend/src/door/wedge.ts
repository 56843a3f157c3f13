/**
 * A keyboard-wedge scanner, wherever the focus is: a burst of keys that ends in Enter. What it
 * typed into a field on its way is taken out again, and no key of it presses a button.
 */
import { decodePasses, resemblesPass } from "./pass";

// The longest time between two keys of a burst. People who type into a field are slower than that;
// elsewhere nobody types, and what has begun as a pass is no word of anybody's.
const IN_FIELD_MS = 90;
const ELSEWHERE_MS = 250;
const IN_PASS_MS = 600;
const SHORTEST = 6;

interface Field {
  element: HTMLInputElement;
  value: string;
}

export function listenToWedge(read: (code: string) => void): void {
  let typed = "";
  let pressed = "";
  let last = 0;
  let before: Field | null = null;

  const forget = () => {
    typed = pressed = "";
    before = null;
  };

  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const isEnd = event.key === "Enter" || (event.key === "Tab" && typed.length >= SHORTEST);
    const gap = event.timeStamp - last;
    if (!isSign(event.key) && !isEnd) return; // Shift, Caps Lock and the like are part of a burst
    if (gap > longestGap(typed, before)) {
      if (isEnd) return forget();
      forget();
    }
    last = event.timeStamp;
    if (!isEnd) {
      if (event.key === " " && isBurst(typed, before)) event.preventDefault();
      if (!typed) before = fieldNow();
      typed += event.key;
      pressed += keyOf(event.code) ?? event.key;
      return;
    }
    if (typed.length >= SHORTEST || isBurst(typed, before)) {
      event.preventDefault();
      event.stopImmediatePropagation();
    }
    if (typed.length < SHORTEST) return forget();
    const code = likelier(typed, pressed);
    if (before) before.element.value = before.value;
    forget();
    read(code);
  }, { capture: true });

  addEventListener("keyup", (event) => {
    if (event.key === " " && isBurst(typed, before)) event.preventDefault();
  }, { capture: true });
}

/** Whether signs have come where nobody types: a space or an Enter among them is a scanner's. */
function isBurst(typed: string, before: Field | null): boolean {
  return typed.trim() !== "" && !before;
}

function longestGap(typed: string, before: Field | null): number {
  if (typed.length >= 4 && resemblesPass(typed)) return IN_PASS_MS;
  return before ? IN_FIELD_MS : ELSEWHERE_MS;
}

/** The layout of the host hides nothing from `code`; a scanner set to that layout needs `key`. */
function likelier(typed: string, pressed: string): string {
  const isPass = (text: string) => !decodePasses(text).next().done;
  return !isPass(typed) && isPass(pressed) ? pressed : typed;
}

function isSign(key: string): boolean {
  return [...key].length === 1 || (key.length > 0 && !/^[A-Za-z0-9]+$/.test(key));
}

/** What this key writes on the scanner's own keyboard, which is American. */
function keyOf(code: string): string | null {
  return /^(?:Key|Digit|Numpad)([A-Z0-9])$/.exec(code)?.[1] ?? null;
}

function fieldNow(): Field | null {
  const focused = document.activeElement;
  return focused instanceof HTMLInputElement ? { element: focused, value: focused.value } : null;
}
