// A date field is written as the browser's own language has it: 11/12 may be in November or in
// December. Beside its label stands the day in words, in the language of the page.

const LOCALES: Record<string, string> = { ar: "ar-MA", en: "en-GB", fr: "fr-MA" };
const FIELDS = "input[type=date], input[type=time]";

export function sayDatesInWords(): void {
  for (const field of document.querySelectorAll<HTMLInputElement>(FIELDS)) say(field);
  document.addEventListener("input", (event) => {
    const field = event.target as Element;
    if (field.matches(FIELDS)) say(field as HTMLInputElement);
  });
}

/** `data-said`: the page says it already. Screen readers read the field itself in words. */
function say(field: HTMLInputElement): void {
  const label = field.closest("label.field")?.querySelector("span");
  if (!label || "said" in field.dataset) return;
  let words = label.querySelector<HTMLElement>(".in-words");
  if (!words) {
    words = document.createElement("small");
    words.className = "in-words";
    words.setAttribute("aria-hidden", "true");
    label.append(" ", words);
  }
  words.textContent = field.type === "date" ? dayInWords(field.value) : hourInWords(field.value);
}

/** `sam. 21 nov.`, with the year when it is not this one. */
function dayInWords(value: string): string {
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

/** `19:30`, where the browser writes 07:30 PM. */
function hourInWords(value: string): string {
  const own = new Intl.DateTimeFormat(undefined, { hour: "numeric" }).resolvedOptions();
  return own.hour12 ? value : "";
}
