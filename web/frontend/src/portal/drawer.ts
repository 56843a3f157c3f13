// The drawer beside the board shows one reservation, or the form for a new one. A chip or a "+" opens
// it, Escape closes it, and the focus then returns there. Without a script, both link to a page.
import htmx from "htmx.org";

import { restoreDrafts } from "./drafts";
import { hideUnreachable, showUnreachable } from "./forms";
import { hasUnsavedInput, restoreUnsavedInput, saveUnsavedInput } from "./unsaved_input";
import { ask } from "./waiting";

const OPENERS = "a[data-reservation], a.free";
const REOPENED = "venuebox-reopened";
let openId = ""; // the reservation, or the address of a "+"

export function followDrawer(): void {
  const reopened = sessionStorage.getItem(REOPENED);
  sessionStorage.removeItem(REOPENED);
  if (reopened && drawer()) void open(reopened.split("/").at(-1) ?? "", reopened);
  document.addEventListener("click", (event) => {
    const at = event.target as Element;
    if (at.closest("[data-close-drawer]")) close();
    const chip = at.closest<HTMLAnchorElement>(OPENERS);
    if (!chip || !drawer() || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    void open(idOf(chip), chip.href);
  });
  document.addEventListener("keydown", (event) => {
    if (!drawer()?.hasChildNodes()) return;
    if (event.key === "Escape") close();
    if (event.key === "Tab") trapFocus(event);
  });
  document.addEventListener("htmx:after:swap", () => {
    if (drawer()?.hasChildNodes() && !drawer()?.contains(document.activeElement)) focusDetail();
    // If the swap removed the focused button, focus the reservation, so that Tab continues there.
    if (document.activeElement === document.body) focusDetail();
    // The refusal stands above the form, which may be far down.
    document.querySelector("#drawer .problem")?.scrollIntoView({ block: "nearest" });
  });
}

/** Show the open reservation again once the page is reloaded. */
export function reopenAfterReload(): void {
  const id = drawer()?.querySelector<HTMLElement>("[data-detail]")?.dataset["detail"] ?? "new";
  if (id === "new") return;
  const base = location.pathname.replace(/\/tonight$/, "");
  sessionStorage.setItem(REOPENED, `${location.origin}${base}/reservations/${id}`);
}

/** Reload the open reservation if it was changed elsewhere, unless there is unsaved input. */
export function refreshDrawer(reservation: string, version: number): void {
  const detail = drawer()?.querySelector<HTMLElement>("[data-detail]");
  if (detail?.dataset["detail"] !== reservation) return;
  if (Number(detail.dataset["version"]) >= version || hasUnsavedInput(detail)) return;
  const link = document.querySelector<HTMLAnchorElement>(`[data-reservation="${reservation}"]`);
  if (link) void open(reservation, link.href);
}

function idOf(opener: HTMLAnchorElement): string {
  return opener.dataset["reservation"] ?? opener.href;
}

function drawer(): HTMLElement | null {
  return document.querySelector("#drawer.drawer-place");
}

/** Show a reservation with what a form of it answered, or with changes that are to be confirmed. */
export async function openReservation(reservation: string, href: string): Promise<void> {
  await open(reservation, href);
}

/** Send a form of the reservation, and show the answer in the drawer. */
export async function act(reservation: string, path: string, values: object): Promise<void> {
  openId = reservation;
  await htmx.ajax("POST", path, { target: "#drawer", swap: "innerHTML", values });
}

async function open(reservation: string, href: string): Promise<void> {
  openId = reservation;
  const address = new URL(href);
  address.searchParams.set("part", "1");
  const request = ask(address.href, { headers: { "HX-Request": "true" } });
  const answer = await request.catch(() => null);
  const text = await answer?.text().catch(() => null);
  if (!answer || text === null || text === undefined) {
    if (openId === reservation) showUnreachable();
    return;
  }
  hideUnreachable();
  const redirect = answer.headers.get("HX-Redirect");
  const place = drawer();
  if (redirect || !place || openId !== reservation) {
    if (redirect) window.location.assign(redirect);
    return;
  }
  const parsed = new DOMParser().parseFromString(text, "text/html");
  saveUnsavedInput();
  place.replaceChildren(...parsed.body.childNodes);
  htmx.process(place);
  restoreUnsavedInput();
  restoreDrafts(place);
  for (const button of place.querySelectorAll<HTMLElement>("[data-without-script]")) button.hidden = true;
  focusDetail();
  // A touch screen's keyboard would cover the drawer.
  if (matchMedia("(pointer: fine)").matches) place.querySelector<HTMLElement>("[autofocus]")?.focus();
  place.scrollTop = 0;
}

function close(): void {
  saveUnsavedInput();
  drawer()?.replaceChildren();
  const openers = [...document.querySelectorAll<HTMLAnchorElement>(OPENERS)];
  openers.find((opener) => idOf(opener) === openId)?.focus();
  openId = "";
}

function focusDetail(): void {
  document.querySelector<HTMLElement>("#drawer [data-detail]")?.focus();
}

/** Keep the focus inside the drawer, so that Tab goes from the last control to the first. */
function trapFocus(event: KeyboardEvent): void {
  const place = drawer();
  if (!place?.contains(document.activeElement)) return;
  const stops = [
    ...place.querySelectorAll<HTMLElement>(
      "a[href], button, input:not([type=hidden]), select, textarea, summary",
    ),
  ].filter((stop) => stop.checkVisibility());
  const [first, last] = [stops[0], stops.at(-1)];
  const at = document.activeElement;
  const leaves = event.shiftKey ? at === first || !stops.includes(at as HTMLElement) : at === last;
  if (!leaves) return;
  event.preventDefault();
  (event.shiftKey ? last : first)?.focus();
}
