/** Finding and making the parts of the page. */

/** The element of that id; the template has it. */
export function part<T extends HTMLElement = HTMLElement>(id: string): T {
  const found = document.getElementById(id);
  if (!found) throw new Error(`the page has no #${id}`);
  return found as T;
}

/** A new element with its class and its text. */
export function made<K extends keyof HTMLElementTagNameMap>(
  tag: K, className = "", text = "",
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (text) element.textContent = text;
  return element;
}

/** Show a text, or hide its place when there is none. */
export function show(place: HTMLElement, text: string | null): void {
  place.hidden = !text;
  place.textContent = text ?? "";
}

/** What a button does, done once: it cannot be pressed again before the first is through. */
export async function once(id: string, deed: () => Promise<void>): Promise<void> {
  const button = part<HTMLButtonElement>(id);
  if (button.disabled) return;
  button.disabled = true;
  try {
    await deed();
  } finally {
    button.disabled = false;
  }
}

/** Sheets close by their cross, by a tap beside them, and by Escape. */
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

/** A row of − number +, bounded. */
export class Stepper {
  private value = 1;
  private most = 1;
  changed: (value: number) => void = () => undefined;

  constructor(private readonly place: HTMLElement) {
    place.addEventListener("click", (event) => {
      const step = (event.target as Element).closest<HTMLElement>("[data-step]")?.dataset["step"];
      if (!step) return;
      this.set(this.value + Number(step), this.most);
      this.changed(this.value);
    });
  }

  get count(): number {
    return this.value;
  }

  set(value: number, most: number): void {
    this.most = Math.max(1, most);
    this.value = Math.min(Math.max(1, value), this.most);
    const output = this.place.querySelector("output");
    if (output) output.textContent = String(this.value);
    const [fewer, more] = this.place.querySelectorAll("button");
    if (fewer) fewer.disabled = this.value <= 1;
    if (more) more.disabled = this.value >= this.most;
  }
}
