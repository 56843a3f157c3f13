// Submit forms only once, show refusals beside the field, and report an unreachable box.

import { keepOtherForms } from "./unsaved_input";
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

// Inline errors. This script sends forms with `data-in-place` and shows a refusal beside its field.
// Without the script, the refusal is a separate page.

export function showErrorsInline(): void {
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (event.defaultPrevented || !(form instanceof HTMLFormElement)) return;
    if (!("inPlace" in form.dataset)) return;
    event.preventDefault();
    void send(form);
  });
}

async function send(form: HTMLFormElement): Promise<void> {
  const texts = [...new FormData(form)].map(([name, value]) => [name, String(value)]);
  const body = new URLSearchParams(texts);
  const headers = { "HX-Request": "true", Accept: "text/html" };
  const answer = await ask(form.action, { method: "POST", body, headers }).catch(() => null);
  const text = await answer?.text().catch(() => null);
  pending.delete(form);
  if (!answer || typeof text !== "string") return showUnreachable();
  hideUnreachable();
  const redirect = answer.headers.get("HX-Redirect");
  if (redirect) {
    keepOtherForms(form);
    return window.location.assign(redirect);
  }
  if (answer.headers.has("HX-Retarget")) return showRefusal(form, text);
  // After a 5xx, it is unknown whether the form took effect, so let the user send it again.
  if (answer.status >= 500) return showUnreachable();
  // Any other page asks for confirmation, so submit normally to show that page.
  form.submit();
}

function showRefusal(form: HTMLFormElement, text: string): void {
  clearRefusals(form);
  const page = new DOMParser().parseFromString(text, "text/html");
  const refusal = page.querySelector<HTMLElement>(".problem");
  if (!refusal) return;
  const name = CSS.escape(refusal.dataset["field"] ?? "-");
  const control = form.querySelector<HTMLElement>(`[name="${name}"]:not([type=hidden])`);
  const field = control?.closest("fieldset, .field");
  if (!control || !field) {
    const place = document.querySelector("#problem");
    place?.replaceChildren(refusal);
    place?.scrollIntoView({ block: "center" });
    return;
  }
  const message = document.createElement("span");
  message.className = "refused";
  message.id = "refused";
  message.setAttribute("role", "alert");
  message.textContent = refusal.textContent;
  const hint = field.querySelector(".hint");
  if (hint) hint.prepend(message);
  else field.append(message);
  control.setAttribute("aria-invalid", "true");
  control.setAttribute("aria-describedby", message.id);
  control.focus();
}

function clearRefusals(form: HTMLFormElement): void {
  document.querySelector("#problem")?.replaceChildren();
  for (const message of form.querySelectorAll(".refused")) message.remove();
  for (const control of form.querySelectorAll("[aria-invalid]")) {
    control.removeAttribute("aria-invalid");
    control.removeAttribute("aria-describedby");
  }
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
