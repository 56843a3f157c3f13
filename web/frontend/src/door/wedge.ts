/**
 * Read codes from a keyboard-wedge scanner, wherever the focus is. The scanner types each code as a
 * burst of keys that ends with Enter or Tab. After a whole pass, a pause also ends the burst. Text
 * that a burst typed into a field is removed, and the keys of a burst do not press buttons.
 */
import { isPass, resemblesPass } from "./guest_pass";

// Maximum time in ms between two keys of a burst. In a field, the limit must be shorter than the
// time between two keys that a person types. Outside fields, nobody types, and text that starts
// like a pass can only come from a scanner, so the other two limits can be longer.
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
  let pressedKeys = "";
  let last = 0;
  let before: Field | null = null;
  let pauseTimer = 0;

  const reset = () => {
    typed = pressedKeys = "";
    before = null;
  };

  const finish = () => {
    const code = likelierCode(typed, pressedKeys);
    if (before) {
      before.element.value = before.value;
      before.element.dispatchEvent(new Event("input", { bubbles: true }));
    }
    reset();
    read(code);
  };

  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const isEnd = event.key === "Enter" || (event.key === "Tab" && typed.length >= SHORTEST);
    const gap = event.timeStamp - last;
    if (!isCharacter(event.key) && !isEnd) return; // keys such as Shift do not end a burst
    if (gap > longestGap(typed, before)) {
      if (isEnd) return reset();
      reset();
    }
    last = event.timeStamp;
    clearTimeout(pauseTimer);
    if (!isEnd) {
      if (event.key === " " && isBurst(typed, before)) event.preventDefault();
      if (!typed) before = fieldNow();
      typed += event.key;
      pressedKeys += keyOf(event.code) ?? event.key;
      if (isPass(typed) || isPass(pressedKeys)) pauseTimer = setTimeout(finish, IN_PASS_MS);
      return;
    }
    if (typed.length >= SHORTEST || isBurst(typed, before)) {
      event.preventDefault();
      event.stopImmediatePropagation();
    }
    if (typed.length < SHORTEST) return reset();
    finish();
  }, { capture: true });

  addEventListener("keyup", (event) => {
    if (event.key === " " && isBurst(typed, before)) event.preventDefault();
  }, { capture: true });
}

/** Whether keys were typed outside a field. If so, a space or Enter also comes from the scanner. */
function isBurst(typed: string, before: Field | null): boolean {
  return typed.trim() !== "" && !before;
}

function longestGap(typed: string, before: Field | null): number {
  if (typed.length >= 4 && resemblesPass(typed)) return IN_PASS_MS;
  return before ? IN_FIELD_MS : ELSEWHERE_MS;
}

/**
 * Return `pressedKeys` if it is a pass and `typed` is not. Otherwise return `typed`. `pressedKeys`
 * is the text that a US keyboard would have typed with the same keys.
 */
function likelierCode(typed: string, pressedKeys: string): string {
  return !isPass(typed) && isPass(pressedKeys) ? pressedKeys : typed;
}

function isCharacter(key: string): boolean {
  return [...key].length === 1 || (key.length > 0 && !/^[A-Za-z0-9]+$/.test(key));
}

/** Return the character of this key on a US keyboard, which scanners emulate. */
function keyOf(code: string): string | null {
  return /^(?:Key|Digit|Numpad)([A-Z0-9])$/.exec(code)?.[1] ?? null;
}

function fieldNow(): Field | null {
  const focused = document.activeElement;
  return focused instanceof HTMLInputElement ? { element: focused, value: focused.value } : null;
}
