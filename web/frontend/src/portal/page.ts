// Features of every portal page, and small additions to single pages.

import { onEachPage } from "./forms";

/** Close an open menu (`<details class="me">`) on Escape or a click elsewhere. */
export function closeMenus(): void {
  const close = (except: Node | null): void => {
    for (const menu of document.querySelectorAll<HTMLDetailsElement>("details.me[open]")) {
      if (except === null || !menu.contains(except)) menu.open = false;
    }
  };
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") close(null);
  });
  document.addEventListener("click", (event) => close(event.target as Node));
}

/** Make `<button data-copy="#id" data-copied="Copied">` copy the text of the element `#id`. */
export function copyOnClick(): void {
  document.addEventListener("click", (event) => {
    const button = (event.target as Element).closest<HTMLElement>("[data-copy]");
    const source = button && document.querySelector(button.dataset["copy"] ?? "");
    if (!button || !source) return;
    void navigator.clipboard.writeText(source.textContent?.trim() ?? "").then(() => {
      button.textContent = button.dataset["copied"] ?? button.textContent;
    });
  });
}

/**
 * Remove one-time secrets when the page is left, so that the back button does not show them again.
 */
export function removeSecrets(): void {
  window.addEventListener("pagehide", () => {
    for (const secret of document.querySelectorAll("[data-once]")) secret.remove();
  });
}

/**
 * Show a flash message only once. Remove its parameter from the URL, so that a reload does not show
 * it again. Remove the message itself when a form is sent.
 */
export function showFlashOnce(): void {
  document.addEventListener("submit", ({ target }) => {
    if (!(target instanceof HTMLFormElement) || target.method !== "post") return;
    document.querySelector("main > .note")?.remove();
  });
  const here = new URL(location.href);
  if (!here.searchParams.has("note")) return;
  here.searchParams.delete("note");
  history.replaceState(history.state, "", here);
}

/**
 * If the back button restores a page whose form was sent, reload the page, because the form's
 * one-time token has been used. A page whose form was not sent is not reloaded.
 */
export function reloadSentForms(): void {
  let wasSent = false;
  document.addEventListener("submit", ({ target, defaultPrevented }) => {
    const form = target instanceof HTMLFormElement ? target : null;
    if (form?.querySelector("[name=token]") && !defaultPrevented) wasSent = true;
  });
  addEventListener("pageshow", ({ persisted }) => {
    const isSent = wasSent || document.querySelector("form[data-sent]") !== null;
    if (persisted && isSent) location.replace(location.href);
  });
}

/** Keep the chosen table while the list of free tables is loaded again. */
export function keepChosenTable(): void {
  let chosen = "";
  let hadFocus = false;
  const tables = (): HTMLSelectElement | null => document.querySelector("#change-table, #new-table");
  document.addEventListener("htmx:before:swap", () => {
    chosen = tables()?.value ?? "";
    hadFocus = tables() !== null && document.activeElement === tables();
  });
  document.addEventListener("htmx:after:swap", () => {
    const fresh = tables();
    if (!fresh) return;
    const isFree = [...fresh.options].some((option) => option.value === chosen);
    if (chosen && isFree) fresh.value = chosen;
    if (hadFocus) fresh.focus();
  });
}

// Show dates in words. A date field uses the browser's locale, so 11/12 may mean 11 December or
// November 12. Therefore, the field's label also shows the date in words, in the page's language.

const LOCALES: Record<string, string> = { ar: "ar-MA", en: "en-GB", fr: "fr-MA" };
const FIELDS = "input[type=date], input[type=time]";

export function labelDates(): void {
  onEachPage((root) => root.querySelectorAll<HTMLInputElement>(FIELDS).forEach(label));
  document.addEventListener("input", (event) => {
    const field = event.target as Element;
    if (field.matches(FIELDS)) label(field as HTMLInputElement);
  });
}

/**
 * Show the field's date or time in its label. Skip fields with `data-said`, whose date in words is
 * already on the page. Hide the text from screen readers, because they read the field itself.
 */
function label(field: HTMLInputElement): void {
  const caption = field.closest("label.field")?.querySelector("span");
  if (!caption || "said" in field.dataset) return;
  let words = caption.querySelector<HTMLElement>(".in-words");
  if (!words) {
    words = document.createElement("small");
    words.className = "in-words";
    words.setAttribute("aria-hidden", "true");
    caption.append(" ", words);
  }
  words.textContent = field.type === "date" ? describeDate(field.value) : describeTime(field.value);
}

/** Return a date such as `sam. 21 nov.`, with the year unless it is the current year. */
function describeDate(value: string): string {
  const day = new Date(`${value}T12:00:00Z`);
  if (Number.isNaN(day.getTime())) return "";
  const isThisYear = day.getUTCFullYear() === new Date().getUTCFullYear();
  return new Intl.DateTimeFormat(LOCALES[document.documentElement.lang], {
    weekday: "short",
    day: "numeric",
    month: "short",
    ...(isThisYear ? {} : { year: "numeric" }),
    timeZone: "UTC",
  }).format(day);
}

/** Return a time such as `19:30` if the browser shows it as 07:30 PM. Otherwise return "". */
function describeTime(value: string): string {
  const format = new Intl.DateTimeFormat(undefined, { hour: "numeric" }).resolvedOptions();
  return format.hour12 ? value : "";
}

/** Fill the form in with the values of the button `data-fill`, such as those of a known guest. */
export function fillOnClick(): void {
  document.addEventListener("click", (event) => {
    const button = (event.target as Element).closest<HTMLButtonElement>("[data-fill]");
    const values = JSON.parse(button?.dataset["fill"] ?? "{}") as Record<string, string>;
    for (const [name, value] of Object.entries(values)) {
      const field = button?.form?.elements.namedItem(name);
      if (!(field instanceof HTMLInputElement)) continue;
      field.value = value;
      field.dispatchEvent(new Event("change", { bubbles: true }));
    }
    if (!button) return;
    const notes = button.form?.elements.namedItem("notes");
    if (notes instanceof HTMLElement) notes.focus();
    document.getElementById("callers")?.replaceChildren();
  });
}
