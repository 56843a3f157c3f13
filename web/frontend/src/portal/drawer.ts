// The drawer beside the board shows one reservation: opened by its chip, left by Escape, and the
// focus goes back to the chip. Without a script a chip is a link to the reservation's own page.
import htmx from "htmx.org";

import { comeBackToWhatWasTyped, isTouched, leaveWhatIsTyped } from "./typing";
import { isReached, sayUnreachable } from "./unreachable";

let shown = "";

export function mindTheDrawer(): void {
  document.addEventListener("click", (event) => {
    const at = event.target as Element;
    if (at.closest("[data-close-drawer]")) close();
    const chip = at.closest<HTMLAnchorElement>("[data-reservation]");
    if (!chip || !drawer() || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    void open(chip.dataset["reservation"] ?? "", chip.href);
  });
  document.addEventListener("keydown", (event) => {
    if (!drawer()?.hasChildNodes()) return;
    if (event.key === "Escape") close();
    if (event.key === "Tab") keepWithin(event);
  });
  document.addEventListener("htmx:after:swap", () => {
    if (drawer()?.hasChildNodes() && !drawer()?.contains(document.activeElement)) focusDetail();
    // On the page of its own, what was pressed is gone too: the keyboard goes on from there.
    if (document.activeElement === document.body) focusDetail();
  });
}

/** Reads the shown reservation again when it was changed elsewhere, unless somebody is typing. */
export function refreshDrawer(reservation: string, version: number): void {
  const detail = drawer()?.querySelector<HTMLElement>("[data-detail]");
  if (detail?.dataset["detail"] !== reservation) return;
  if (Number(detail.dataset["version"]) >= version || isTouched(detail)) return;
  const link = document.querySelector<HTMLAnchorElement>(`[data-reservation="${reservation}"]`);
  if (link) void open(reservation, link.href);
}

function drawer(): HTMLElement | null {
  return document.querySelector("#drawer.drawer-place");
}

async function open(reservation: string, address: string): Promise<void> {
  shown = reservation;
  const asked = fetch(`${address}?part=1`, { headers: { "HX-Request": "true" } });
  const answer = await asked.catch(() => null);
  const text = await answer?.text().catch(() => null);
  if (!answer || text === null || text === undefined) {
    if (shown === reservation) sayUnreachable();
    return;
  }
  isReached();
  const elsewhere = answer.headers.get("HX-Redirect");
  const place = drawer();
  if (elsewhere || !place || shown !== reservation) {
    if (elsewhere) window.location.assign(elsewhere);
    return;
  }
  const parsed = new DOMParser().parseFromString(text, "text/html");
  leaveWhatIsTyped();
  place.replaceChildren(...parsed.body.childNodes);
  htmx.process(place);
  comeBackToWhatWasTyped();
  focusDetail();
  place.scrollTop = 0;
}

function close(): void {
  leaveWhatIsTyped();
  drawer()?.replaceChildren();
  document.querySelector<HTMLElement>(`[data-reservation="${CSS.escape(shown)}"]`)?.focus();
  shown = "";
}

function focusDetail(): void {
  document.querySelector<HTMLElement>("#drawer [data-detail]")?.focus();
}

/** Tab goes round within the drawer. */
function keepWithin(event: KeyboardEvent): void {
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
