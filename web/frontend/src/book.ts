/**
 * The booking page works without this. With it another evening or party shows what is free at
 * once, with everything that was typed left in place, and a double tap is one tap.
 */

const evening = document.querySelector<HTMLFormElement>("[data-evening]");
const booking = document.querySelector<HTMLFormElement>("[data-booking]");
let asking: AbortController | undefined;

/** The page as it is for that evening and party; its offer takes the place of this one's. */
async function look(date: string, guests: string): Promise<void> {
  if (!evening || !booking) return;
  asking?.abort();
  asking = new AbortController();
  const url = new URL(evening.action);
  url.search = new URLSearchParams({ date, guests, lang: document.documentElement.lang }).toString();
  booking.querySelector("[data-offer]")?.setAttribute("aria-busy", "true");
  const answer = await fetch(url, { signal: asking.signal, cache: "no-store" });
  const newer = new DOMParser().parseFromString(await answer.text(), "text/html");
  const parts = ["[data-offer]", "[data-evening] .chips", ".languages", "[data-booking] .send"];
  for (const part of parts) {
    const [here, there] = [document.querySelector(part), newer.querySelector(part)];
    if (!there) return location.assign(url);
    here?.replaceChildren(...there.childNodes);
  }
  booking.querySelector("[data-offer]")?.removeAttribute("aria-busy");
  history.replaceState(null, "", url);
}

/** Without an answer the form is sent as it would be without this script. */
function lookOrSend(date: string, guests: string): void {
  look(date, guests).catch((error: unknown) => {
    if (error instanceof DOMException && error.name === "AbortError") return;
    evening?.submit();
  });
}

if (evening && booking) {
  const date = evening.querySelector<HTMLInputElement>("input[name=date]");
  const guests = evening.querySelector<HTMLSelectElement>("select[name=guests]");
  const show = (day: string): void => {
    if (date) date.value = day;
    if (date?.reportValidity() && guests) lookOrSend(day, guests.value);
  };
  evening.querySelector("[data-look]")?.setAttribute("hidden", "");
  evening.addEventListener("change", () => show(date?.value ?? ""));
  evening.addEventListener("click", (event) => {
    const chip = event.target instanceof Element ? event.target.closest("button[name=date]") : null;
    if (!(chip instanceof HTMLButtonElement)) return;
    event.preventDefault();
    show(chip.value);
  });
  booking.addEventListener("submit", (event) => {
    if (booking.dataset["sent"]) event.preventDefault();
    booking.dataset["sent"] = "yes";
  });
  // A page that the browser kept and shows again may be sent again.
  addEventListener("pageshow", () => delete booking.dataset["sent"]);
}

export {};
