/**
 * The booking page works without this. With it another evening or party shows what is free at
 * once, with everything that was chosen and typed left in place, and a double tap is one tap.
 */

const evening = document.querySelector<HTMLFormElement>("[data-evening]");
const booking = document.querySelector<HTMLFormElement>("[data-booking]");
let asking: AbortController | undefined;

/** What the guest chose by hand: an hour, and by hour a table. */
let hour: string | undefined;
const tables = new Map<string, string>();

const hours = (): HTMLInputElement[] => [
  ...(booking?.querySelectorAll<HTMLInputElement>("input[name=when]") ?? []),
];
const chosenHour = (): string | undefined => hours().find((one) => one.checked)?.value;

/** The page as it is for that evening and party; its offer takes the place of this one's. */
async function look(date: string, guests: string, isSpent: boolean): Promise<void> {
  if (!evening || !booking) return;
  asking?.abort();
  asking = new AbortController();
  const url = new URL(evening.action);
  url.search = new URLSearchParams({ date, guests, lang: document.documentElement.lang }).toString();
  booking.querySelector("[data-offer]")?.setAttribute("aria-busy", "true");
  const answer = await fetch(url, { signal: asking.signal, cache: "no-store" });
  const newer = new DOMParser().parseFromString(await answer.text(), "text/html");
  const shown = booking.querySelector<HTMLInputElement>("input[name=date]")?.value;
  // The hour that the page chose by itself is the guest's own for that evening only.
  const wanted = hour ?? (shown === date ? chosenHour() : undefined);
  const parts = ["[data-offer]", "[data-evening] .chips", ".languages", "[data-booking] .send"];
  for (const part of parts) {
    const [here, there] = [document.querySelector(part), newer.querySelector(part)];
    if (!there) return location.assign(url);
    here?.replaceChildren(...there.childNodes);
  }
  const fresh = newer.querySelector("[data-booking] input[name=token]");
  if (isSpent && fresh) booking.querySelector("input[name=token]")?.replaceWith(fresh);
  if (wanted !== undefined) chooseAgain(wanted);
  booking.querySelector("[data-offer]")?.removeAttribute("aria-busy");
  history.replaceState(null, "", url);
}

/** What is still free stays chosen; what is not leaves nothing chosen, and is told. */
function chooseAgain(wanted: string): void {
  const all = hours();
  for (const one of all) one.checked = one.value === wanted && !one.disabled;
  const isFree = all.some((one) => one.checked);
  if (all.length && !isFree) tellLost("hour");
  for (const [name, table] of tables) {
    const choice = booking?.elements.namedItem(name);
    if (!(choice instanceof HTMLSelectElement)) continue;
    const isOffered = [...choice.options].some((one) => one.value === table);
    if (isOffered) choice.value = table;
    else if (isFree && name === `table-${wanted}`) tellLost("table");
  }
}

function tellLost(what: "hour" | "table"): void {
  booking?.querySelector(`[data-lost=${what}]`)?.removeAttribute("hidden");
}

function remember(choice: EventTarget | null): void {
  if (choice instanceof HTMLInputElement && choice.name === "when") hour = choice.value;
  if (!(choice instanceof HTMLSelectElement) || !choice.name.startsWith("table-")) return;
  hour = chosenHour();
  if (choice.value) tables.set(choice.name, choice.value);
  else tables.delete(choice.name);
}

/** Without an answer the form is sent as it would be without this script. */
function lookOrSend(date: string, guests: string, isSpent = false): void {
  look(date, guests, isSpent).catch((error: unknown) => {
    if (error instanceof DOMException && error.name === "AbortError") return;
    evening?.submit();
  });
}

if (evening && booking) {
  const date = evening.querySelector<HTMLInputElement>("input[name=date]");
  const guests = evening.querySelector<HTMLSelectElement>("select[name=guests]");
  const show = (day: string, isSpent = false): void => {
    if (date) date.value = day;
    if (date?.reportValidity() && guests) lookOrSend(day, guests.value, isSpent);
  };
  evening.querySelector("[data-look]")?.setAttribute("hidden", "");
  evening.addEventListener("change", () => show(date?.value ?? ""));
  evening.addEventListener("click", (event) => {
    const chip = event.target instanceof Element ? event.target.closest("button[name=date]") : null;
    if (!(chip instanceof HTMLButtonElement)) return;
    event.preventDefault();
    show(chip.value);
  });
  booking.addEventListener("change", (event) => remember(event.target));
  // A form that comes back with a fault bears what was chosen before.
  for (const choice of booking.querySelectorAll("[data-chosen] :checked")) {
    remember(choice instanceof HTMLOptionElement ? choice.closest("select") : choice);
  }
  booking.addEventListener("submit", (event) => {
    if (booking.dataset["sent"]) event.preventDefault();
    booking.dataset["sent"] = "yes";
  });
  // A page that the browser kept and shows again may be sent again: as another booking, if it
  // was sent before, and with what is free by now.
  addEventListener("pageshow", (event) => {
    const wasSent = booking.dataset["sent"] !== undefined;
    delete booking.dataset["sent"];
    if (event.persisted && wasSent) show(date?.value ?? "", true);
  });
}

export {};
