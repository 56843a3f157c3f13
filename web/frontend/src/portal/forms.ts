// Submit forms only once and in place, show refusals beside the field, and report a box that does
// not answer.

import htmx from "htmx.org";

import { forgetDraft } from "./drafts";
import { ask } from "./waiting";

// Double submits. A form is not sent again until its response arrives or the timeout passes.

const TIMEOUT_MS = 10_000;
let pending = new WeakSet<EventTarget>();

export function preventDoubleSubmit(): void {
  // Listen in the capture phase, i.e. before htmx, which would queue the second request.
  document.addEventListener("submit", onSubmit, true);
  document.addEventListener("htmx:finally:request", ({ target }) => {
    if (target) pending.delete(target);
  });
  window.addEventListener("pageshow", () => (pending = new WeakSet()));
  document.addEventListener("click", ignoreSecondClick, true);
}

function onSubmit(event: SubmitEvent): void {
  const form = event.target;
  if (!(form instanceof HTMLFormElement) || form.method !== "post") return;
  if (pending.has(form)) {
    event.preventDefault();
    event.stopImmediatePropagation();
    return;
  }
  pending.add(form);
  window.setTimeout(() => pending.delete(form), TIMEOUT_MS);
}

// The second click of a double click may meet another button: when the drawer opens, and when it
// shows “On time” where “Will be late” was, or “Check in” with the rest of the party.

const DOUBLE_CLICK_MS = 500;
const DOUBLE_CLICK_PX = 20;
let last = { time: 0, x: 0, y: 0, clicked: null as Element | null };

function ignoreSecondClick(event: MouseEvent): void {
  const clicked = (event.target as Element).closest("a, button");
  if (!clicked || event.detail === 0) return; // 0 is the keyboard
  const isNear = Math.hypot(event.clientX - last.x, event.clientY - last.y) < DOUBLE_CLICK_PX;
  const isSoon = event.timeStamp - last.time < DOUBLE_CLICK_MS;
  const isOther = clicked !== last.clicked;
  const isIgnored = isNear && isSoon && isOther && clicked.matches("#drawer form button");
  // A third click is ignored too, because it is compared with the first one.
  last = { time: event.timeStamp, x: event.clientX, y: event.clientY,
           clicked: isIgnored ? last.clicked : clicked };
  if (!isIgnored) return;
  event.preventDefault();
  event.stopImmediatePropagation();
}

// This script sends the forms, so that no form loses its input when the box does not answer. Forms
// with `hx-post` are sent by htmx, and those with `data-plain` by the browser.

const SHOWN = "portal:shown";

/** Prepare the page now, and again each time a form's answer replaces its content. */
export function onEachPage(prepare: (root: ParentNode) => void): void {
  prepare(document);
  document.addEventListener(SHOWN, () => prepare(document));
}

export function sendFormsInPlace(): void {
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (event.defaultPrevented || !(form instanceof HTMLFormElement)) return;
    if (form.method !== "post" || form.matches("[hx-post], [data-plain]")) return;
    event.preventDefault();
    void send(form, event.submitter);
  });
  // The page that was replaced has the same address: load it again.
  let hasReplaced = false;
  document.addEventListener(SHOWN, () => (hasReplaced = true));
  window.addEventListener("popstate", () => hasReplaced && location.reload());
}

async function send(form: HTMLFormElement, submitter: HTMLElement | null): Promise<void> {
  const fields = new FormData(form, submitter);
  const texts = [...fields].map(([name, value]) => [name, String(value)]);
  const isUpload = form.enctype === "multipart/form-data";
  const body = isUpload ? fields : new URLSearchParams(texts);
  const address = new URL(form.getAttribute("action") ?? "", location.href);
  const headers = { Accept: "text/html", "HX-Request": "true", "HX-Current-URL": location.href };
  const request = ask(address.href, { method: "POST", body, headers });
  const answer = await request.catch(() => null);
  const text = await answer?.text().catch(() => null);
  pending.delete(form);
  if (!answer || typeof text !== "string") return showUnreachable();
  hideUnreachable();
  const redirect = answer.headers.get("HX-Redirect") ?? (answer.redirected ? answer.url : null);
  if (redirect) {
    if (answer.ok) {
      form.dataset["sent"] = "";
      forgetDraft(form);
    }
    return goTo(new URL(redirect, location.href));
  }
  if (answer.headers.has("HX-Retarget")) return showRefusals(form, text);
  // After a 5xx, it is unknown whether the form took effect, so let the user send it again.
  if (answer.status >= 500 || !showPage(text, address.hash)) showUnreachable();
}

function goTo(target: URL): void {
  const isHere = target.pathname === location.pathname && target.search === location.search;
  if (!isHere || !target.hash) return location.assign(target);
  history.replaceState(history.state, "", target); // a fragment alone loads nothing
  location.reload();
}

/** Replace the content of the page with that of another page, and scroll to `fragment`. */
function showPage(text: string, fragment: string): boolean {
  const page = new DOMParser().parseFromString(text, "text/html");
  const [fresh, shown] = [page.querySelector<HTMLElement>("#main"), document.querySelector("#main")];
  if (!fresh || !shown) return false;
  // The back button leads to the page as it was, unless this is the same page with its faults.
  const isRefused = fresh.querySelector(".problem, .refused") !== null;
  if (!isRefused) history.pushState(null, "", location.href);
  document.title = page.title;
  shown.replaceWith(fresh);
  htmx.process(fresh);
  document.dispatchEvent(new Event(SHOWN));
  const first = fresh.querySelector<HTMLElement>("[autofocus]");
  (first ?? fresh).focus({ preventScroll: true });
  const target = fragment ? document.getElementById(fragment.slice(1)) : null;
  if (target) target.scrollIntoView();
  else if (isRefused) (first ?? fresh.querySelector(".problem"))?.scrollIntoView({ block: "center" });
  else window.scrollTo(0, 0);
  return true;
}

/** Show each fault at its field, and those of no field at the top of the page. */
function showRefusals(form: HTMLFormElement, text: string): void {
  clearRefusals(form);
  const page = new DOMParser().parseFromString(text, "text/html");
  const top = document.querySelector("#problem");
  let first: HTMLElement | null = null;
  for (const refusal of page.querySelectorAll<HTMLElement>(".problem")) {
    const name = refusal.dataset["field"] ?? "";
    const named = `[name="${CSS.escape(name)}"]:not([type=hidden])`;
    const control = form.querySelector<HTMLElement>(named);
    const field = control?.closest("fieldset, .field");
    if (!control || !field) {
      top?.append(refusal);
      continue;
    }
    const message = document.createElement("span");
    message.className = "refused";
    message.id = `refused-${name}`;
    message.setAttribute("role", "alert");
    message.textContent = refusal.textContent;
    const hint = field.querySelector(".hint");
    if (hint) hint.prepend(message);
    else field.append(message);
    control.setAttribute("aria-invalid", "true");
    describe(control, [message.id, ...descriptions(control)]);
    first ??= control;
  }
  if (first) first.focus();
  else top?.scrollIntoView({ block: "center" });
}

function clearRefusals(form: HTMLFormElement): void {
  document.querySelector("#problem")?.replaceChildren();
  for (const message of form.querySelectorAll(".refused")) message.remove();
  for (const control of form.querySelectorAll("[aria-invalid]")) {
    control.removeAttribute("aria-invalid");
    describe(control, descriptions(control).filter((id) => !id.startsWith("refused")));
  }
}

function descriptions(control: Element): string[] {
  return (control.getAttribute("aria-describedby") ?? "").split(" ").filter(Boolean);
}

function describe(control: Element, ids: readonly string[]): void {
  if (ids.length > 0) control.setAttribute("aria-describedby", ids.join(" "));
  else control.removeAttribute("aria-describedby");
}

// Network errors

export function showNetworkErrors(): void {
  document.addEventListener("htmx:error", (event) => {
    // During an update, the box restarts. The page already says so, so show no error.
    if ((event.target as Element).closest("[data-may-be-away]")) return;
    // Without `ctx.text`, there was no response. A refusal has its own message.
    const { ctx } = (event as CustomEvent<{ ctx?: { text?: string } }>).detail;
    if (ctx && ctx.text === undefined) showUnreachable();
  });
  document.addEventListener("htmx:after:request", hideUnreachable);
}

export function showUnreachable(): void {
  hideUnreachable();
  const place = document.querySelector<HTMLElement>("#problem");
  if (!place) return;
  const message = document.createElement("p");
  message.className = "problem";
  message.textContent = place.dataset["unreachable"] ?? "";
  message.dataset["outOfReach"] = "";
  // An open drawer may cover the page, so show the message in the drawer.
  const head = document.querySelector("#drawer .detail-head");
  if (head) message.setAttribute("role", "alert");
  if (head) head.after(message);
  else place.append(message);
  message.scrollIntoView({ block: "nearest" });
}

export function hideUnreachable(): void {
  for (const message of document.querySelectorAll("[data-out-of-reach]")) message.remove();
}
