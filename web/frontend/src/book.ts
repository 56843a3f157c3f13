/**
 * The booking page. It also works without this script. The script updates the free tables in place
 * when the date or party size changes, keeps the guest's input, and sends the form only once.
 */

import { sendForm } from "./shared/send_form";

const evening = document.querySelector<HTMLFormElement>("[data-evening]");
const booking = document.querySelector<HTMLFormElement>("[data-booking]");
let pendingRequest: AbortController | undefined;

/** The slot that the guest has chosen, and the chosen table for each slot. */
let slot: string | undefined;
const tables = new Map<string, string>();

const slotInputs = (): HTMLInputElement[] => [
  ...(booking?.querySelectorAll<HTMLInputElement>("input[name=when]") ?? []),
];
const checkedSlot = (): string | undefined => slotInputs().find((input) => input.checked)?.value;

/**
 * Load the page for this date and party size, and show the tables that it offers. If `isSpent`, the
 * form's one-time token has been used, so replace it too.
 */
async function loadOffer(date: string, guests: string, isSpent: boolean): Promise<void> {
  if (!evening || !booking) return;
  pendingRequest?.abort();
  pendingRequest = new AbortController();
  const url = new URL(evening.action);
  const { lang } = document.documentElement;
  url.search = new URLSearchParams({ date, guests, lang }).toString();
  booking.querySelector("[data-offer]")?.setAttribute("aria-busy", "true");
  const answer = await fetch(url, { signal: pendingRequest.signal, cache: "no-store" });
  const newer = new DOMParser().parseFromString(await answer.text(), "text/html");
  const shown = booking.querySelector<HTMLInputElement>("input[name=date]")?.value;
  // If the guest has not chosen a slot, keep the preselected slot only for the same date.
  const wanted = slot ?? (shown === date ? checkedSlot() : undefined);
  const parts = ["[data-offer]", "[data-evening] .chips", ".languages", "[data-booking] .send"];
  for (const part of parts) {
    const [here, there] = [document.querySelector(part), newer.querySelector(part)];
    if (!there) return location.assign(url);
    here?.replaceChildren(...there.childNodes);
  }
  const fresh = newer.querySelector("[data-booking] input[name=token]");
  if (isSpent && fresh) booking.querySelector("input[name=token]")?.replaceWith(fresh);
  if (wanted !== undefined) restoreChoice(wanted);
  booking.querySelector("[data-offer]")?.removeAttribute("aria-busy");
  history.replaceState(null, "", url);
}

/** Select the slot `wanted` and the chosen tables again. Show a notice if one is no longer free. */
function restoreChoice(wanted: string): void {
  const all = slotInputs();
  for (const input of all) input.checked = input.value === wanted && !input.disabled;
  const isFree = all.some((input) => input.checked);
  if (all.length && !isFree) showLost("hour");
  for (const [name, table] of tables) {
    const choice = booking?.elements.namedItem(name);
    if (!(choice instanceof HTMLSelectElement)) continue;
    const isOffered = [...choice.options].some((option) => option.value === table);
    if (isOffered) choice.value = table;
    else if (isFree && name === `table-${wanted}`) showLost("table");
  }
}

function showLost(what: "hour" | "table"): void {
  booking?.querySelector(`[data-lost=${what}]`)?.removeAttribute("hidden");
}

function remember(choice: EventTarget | null): void {
  if (choice instanceof HTMLInputElement && choice.name === "when") slot = choice.value;
  if (!(choice instanceof HTMLSelectElement) || !choice.name.startsWith("table-")) return;
  slot = checkedSlot();
  if (choice.value) tables.set(choice.name, choice.value);
  else tables.delete(choice.name);
}

/** Update the offered tables. If that fails, submit the form, which loads the whole page. */
function loadOfferOrSubmit(date: string, guests: string, isSpent = false): void {
  loadOffer(date, guests, isSpent).catch((error: unknown) => {
    if (error instanceof DOMException && error.name === "AbortError") return;
    evening?.submit();
  });
}

/** Send the form, which stays as it is if there is no answer. */
async function send(form: HTMLFormElement): Promise<void> {
  form.dataset["sent"] = "yes";
  const answer = await sendForm(form);
  if (answer?.redirected) return location.assign(answer.url);
  if (answer) return form.submit(); // the page with its faults: a refused form may be sent again
  delete form.dataset["sent"];
}

if (evening && booking) {
  const date = evening.querySelector<HTMLInputElement>("input[name=date]");
  const guests = evening.querySelector<HTMLSelectElement>("select[name=guests]");
  const show = (day: string, isSpent = false): void => {
    if (date) date.value = day;
    if (date?.reportValidity() && guests) loadOfferOrSubmit(day, guests.value, isSpent);
  };
  evening.querySelector("[data-look]")?.setAttribute("hidden", "");
  // While a date is typed, the field fires "change" for incomplete dates too.
  evening.addEventListener("change", () => {
    if (date?.checkValidity()) show(date.value);
  });
  evening.addEventListener("submit", (event) => {
    event.preventDefault();
    show(date?.value ?? "");
  });
  evening.addEventListener("click", (event) => {
    const chip = event.target instanceof Element ? event.target.closest("[data-day]") : null;
    if (!(chip instanceof HTMLElement) || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    show(chip.dataset["day"] ?? "");
  });
  booking.addEventListener("change", (event) => remember(event.target));
  // If the box shows the form again because of an error, the form contains the earlier choice.
  for (const choice of booking.querySelectorAll("[data-chosen] :checked")) {
    remember(choice instanceof HTMLOptionElement ? choice.closest("select") : choice);
  }
  booking.addEventListener("submit", (event) => {
    event.preventDefault();
    if (!booking.dataset["sent"]) void send(booking);
  });
  // If the back button restores a page whose form was sent, load a new token and the tables that
  // are still free.
  addEventListener("pageshow", (event) => {
    const wasSent = booking.dataset["sent"] !== undefined;
    delete booking.dataset["sent"];
    if (event.persisted && wasSent) show(date?.value ?? "", true);
  });
}

