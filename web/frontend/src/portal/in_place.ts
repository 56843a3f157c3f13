// What is refused is said beside its field, on the page where it was typed: nobody has to go back for
// it. Without a script the refusal is a page of its own.
import { release } from "./sending";
import { isReached, sayUnreachable } from "./unreachable";

export function sayRefusalsInPlace(): void {
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
  const answer = await fetch(form.action, { method: "POST", body, headers }).catch(() => null);
  const text = await answer?.text().catch(() => null);
  release(form);
  if (!answer || typeof text !== "string") return sayUnreachable();
  isReached();
  const elsewhere = answer.headers.get("HX-Redirect");
  if (elsewhere) return window.location.assign(elsewhere);
  if (answer.headers.has("HX-Retarget")) return say(form, text);
  // Not the box answered, or nobody knows what it did: to send it once more is for the person.
  if (answer.status >= 500) return sayUnreachable();
  // A question on a page of its own: nothing was done yet, and it is asked there.
  form.submit();
}

function say(form: HTMLFormElement, text: string): void {
  forget(form);
  const part = new DOMParser().parseFromString(text, "text/html").querySelector<HTMLElement>(".problem");
  if (!part) return;
  const name = CSS.escape(part.dataset["field"] ?? "-");
  const control = form.querySelector<HTMLElement>(`[name="${name}"]:not([type=hidden])`);
  const place = document.querySelector("#problem");
  const within = control?.closest("fieldset, .field");
  if (!control || !within) {
    place?.replaceChildren(part);
    place?.scrollIntoView({ block: "center" });
    return;
  }
  const said = document.createElement("span");
  said.className = "refused";
  said.id = "refused";
  said.setAttribute("role", "alert");
  said.textContent = part.textContent;
  const hint = within.querySelector(".hint");
  if (hint) hint.prepend(said);
  else within.append(said);
  control.setAttribute("aria-invalid", "true");
  control.setAttribute("aria-describedby", said.id);
  control.focus();
}

function forget(form: HTMLFormElement): void {
  document.querySelector("#problem")?.replaceChildren();
  for (const said of form.querySelectorAll(".refused")) said.remove();
  for (const one of form.querySelectorAll("[aria-invalid]")) {
    one.removeAttribute("aria-invalid");
    one.removeAttribute("aria-describedby");
  }
}
