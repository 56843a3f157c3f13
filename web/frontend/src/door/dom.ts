/** DOM helpers. */

/** Return the element with this id. Throws if the page has no such element. */
export function byId<T extends HTMLElement = HTMLElement>(id: string): T {
  const found = document.getElementById(id);
  if (!found) throw new Error(`the page has no #${id}`);
  return found as T;
}

/** Create an element with a class and text content. */
export function create<K extends keyof HTMLElementTagNameMap>(
  tag: K, className = "", text = "",
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (text) element.textContent = text;
  return element;
}

/** Create an element with a name or code, which browsers must not translate. */
export function createName<K extends keyof HTMLElementTagNameMap>(
  tag: K, className: string, text: string,
): HTMLElementTagNameMap[K] {
  const element = create(tag, className, text);
  element.translate = false;
  return element;
}

/** Show a text, or hide the element if there is none. */
export function showText(place: HTMLElement, text: string | null): void {
  place.hidden = !text;
  place.textContent = text ?? "";
}

/** Run `action` with the button disabled, so that a second press has no effect. */
export async function runOnce(id: string, action: () => Promise<void>): Promise<void> {
  const button = byId<HTMLButtonElement>(id);
  if (button.disabled) return;
  button.disabled = true;
  try {
    await action();
  } finally {
    button.disabled = false;
  }
}

/** Let users close sheets with the close button or a tap outside. The browser handles Escape. */
export function prepareSheets(): void {
  for (const sheet of document.querySelectorAll<HTMLDialogElement>("dialog.sheet")) {
    sheet.querySelector("[data-close]")?.addEventListener("click", () => sheet.close());
    sheet.addEventListener("click", (event) => {
      if (event.target === sheet && sheet.id !== "conflict") sheet.close();
    });
  }
}

export function closeSheets(): void {
  for (const sheet of document.querySelectorAll<HTMLDialogElement>("dialog[open]")) sheet.close();
}

/** A control to choose a number from 1 to a maximum, with a select list and − and + buttons. */
export class Stepper {
  private value = 1;
  private most = 1;
  private readonly list: HTMLSelectElement;
  changed: (value: number) => void = () => undefined;

  constructor(private readonly place: HTMLElement) {
    this.list = place.querySelector("select") as HTMLSelectElement;
    place.addEventListener("click", (event) => {
      const step = (event.target as Element).closest<HTMLElement>("[data-step]")?.dataset["step"];
      if (!step) return;
      this.set(this.value + Number(step), this.most);
      this.changed(this.value);
    });
    this.list.addEventListener("change", () => {
      this.list.blur();
      this.set(Number(this.list.value), this.most);
      this.changed(this.value);
    });
  }

  /** Whether the list has the focus and may therefore be open. */
  get isChoosing(): boolean {
    return document.activeElement === this.list;
  }

  get count(): number {
    return this.value;
  }

  set(value: number, most: number): void {
    this.most = Math.max(1, most);
    this.value = Math.min(Math.max(1, value), this.most);
    if (this.list.length !== this.most) {
      this.list.replaceChildren(
        ...Array.from({ length: this.most }, (_, n) => new Option(String(n + 1))),
      );
    }
    this.list.value = String(this.value);
    const [fewer, more] = this.place.querySelectorAll("button");
    if (fewer) fewer.disabled = this.value <= 1;
    if (more) more.disabled = this.value >= this.most;
  }
}

const WITHIN_MS = 350;
const NEAR_PX = 30;

/**
 * Ignore the second tap of a double tap on `place` if the content changed between the two taps,
 * because the user did not mean to tap the new content. `shownAt` returns the time of the last
 * change, on the clock of `performance.now()`.
 */
export function ignoreSecondTaps(place: HTMLElement, shownAt: () => number): void {
  let before: MouseEvent | null = null;
  addEventListener("click", (event) => {
    const first = before;
    before = event;
    const isKey = event.detail === 0;
    if (!first || isKey || !place.contains(event.target as Node)) return;
    const near = Math.hypot(event.clientX - first.clientX, event.clientY - first.clientY) < NEAR_PX;
    const soon = event.timeStamp - first.timeStamp < WITHIN_MS;
    if (near && soon && first.timeStamp < shownAt()) {
      event.preventDefault();
      event.stopPropagation();
    }
  }, { capture: true });
}
