// What somebody types beside a reservation is theirs until they send it or leave it: another button
// of it, pressed meanwhile, and an evening that is read again, wait for it or carry it over.

type Control = HTMLInputElement | HTMLTextAreaElement | HTMLSelectElement;

interface Typed {
  action: string;
  name: string;
  value: string;
  checked: boolean;
  /** What stood there before anybody typed; null where it is not known any more. */
  was: string | null;
}

interface Answered {
  ctx?: { sourceElement?: Element; response?: { status: number } };
}

const CONTROLS = "input:not([type=hidden]), textarea, select";
let kept: { reservation: string; typed: Typed[] } | undefined;
/** What was typed beside a reservation that gave way to another: it waits there. */
const left = new Map<string, Typed[]>();
let waiting: (() => void) | undefined;

export function keepWhatIsTyped(): void {
  document.addEventListener("htmx:before:swap", (event) => collect(event as CustomEvent<Answered>));
  document.addEventListener("htmx:after:swap", restore);
  for (const kind of ["htmx:after:swap", "click", "focusout", "keyup"]) {
    document.addEventListener(kind, () => window.setTimeout(goOn));
  }
}

/** Whether something is typed there that was not sent, or is about to be. */
export function isTouched(detail: ParentNode): boolean {
  return (
    detail.querySelector("form[data-refused], form :focus") !== null ||
    [...detail.querySelectorAll<Control>(CONTROLS)].some(isChanged)
  );
}

/** Before the drawer shows something else, or nothing. */
export function leaveWhatIsTyped(): void {
  const detail = shownDetail();
  if (!detail) return;
  left.set(detail.dataset["detail"] ?? "", [...detail.querySelectorAll("form")].flatMap(typedInto));
}

/** As the drawer shows a reservation. */
export function comeBackToWhatWasTyped(): void {
  const detail = shownDetail();
  const reservation = detail?.dataset["detail"] ?? "";
  if (detail) putBack(detail, left.get(reservation) ?? []);
  left.delete(reservation);
}

/** Does it now, or as soon as nothing that is typed would be lost by it; the latest alone. */
export function whenNobodyTypes(act: () => void): void {
  waiting = act;
  goOn();
}

function goOn(): void {
  const detail = shownDetail();
  if (!waiting || (detail && isTouched(detail))) return;
  const act = waiting;
  waiting = undefined;
  act();
}

function shownDetail(): HTMLElement | null {
  return document.querySelector<HTMLElement>("#drawer [data-detail]");
}

/** All but what was sent just now, and nothing about a guest who was erased. */
function collect(event: CustomEvent<Answered>): void {
  const sent = event.detail.ctx?.sourceElement;
  const detail = sent?.closest<HTMLElement>("[data-detail]");
  kept = undefined;
  if (!detail || !(sent instanceof HTMLFormElement)) return;
  const reservation = detail.dataset["detail"] ?? "";
  const isErased = sent.action.endsWith("/erase");
  if (!detail.isConnected) {
    // The drawer shows something else by now. What was done needs no look, what was refused does.
    const waits = isErased ? [] : (left.get(reservation) ?? []);
    const typed = waits.filter((one) => one.action !== sent.getAttribute("action"));
    left.set(reservation, typed);
    if ((event.detail.ctx?.response?.status ?? 0) < 400) return event.preventDefault();
    leaveWhatIsTyped();
    kept = { reservation, typed };
  } else if (!isErased) {
    const forms = [...detail.querySelectorAll("form")].filter((form) => form !== sent);
    kept = { reservation, typed: forms.flatMap(typedInto) };
  }
}

function typedInto(form: HTMLFormElement): Typed[] {
  const isRefused = form.dataset["refused"] !== undefined;
  const controls = [...form.querySelectorAll<Control>(CONTROLS)];
  return controls
    .filter((one) => one.name && (isRefused || isChanged(one)))
    .map((one) => ({
      action: form.getAttribute("action") ?? "",
      name: one.name,
      value: one.value,
      checked: one instanceof HTMLInputElement && one.checked,
      was: isRefused ? null : initialValue(one),
    }));
}

function restore(): void {
  const detail = shownDetail();
  const known = kept;
  kept = undefined;
  if (detail && known && detail.dataset["detail"] === known.reservation) putBack(detail, known.typed);
}

function putBack(detail: HTMLElement, all: Typed[]): void {
  const now = detail.dataset["now"] ?? "";
  for (const typed of all) {
    const form = detail.querySelector<HTMLFormElement>(`form[action="${typed.action}"]`);
    const control = form?.querySelector<Control>(`[name="${typed.name}"]`);
    if (!control) continue;
    const stands = initialValue(control);
    if (control instanceof HTMLInputElement) control.checked = typed.checked;
    control.value = typed.value;
    if (isChanged(control)) control.closest("details")?.setAttribute("open", "");
    // What somebody else wrote meanwhile stands beside what this person typed.
    if (stands === typed.was || stands === typed.value || control instanceof HTMLSelectElement) continue;
    const hint = document.createElement("span");
    hint.className = "hint";
    hint.textContent = now.replace("…", stands || "–");
    control.after(hint);
  }
}

function isChanged(control: Control): boolean {
  if (control instanceof HTMLInputElement && control.type === "checkbox") {
    return control.checked !== control.defaultChecked;
  }
  return control.value !== initialValue(control);
}

/** As the page came. */
function initialValue(control: Control): string {
  if (!(control instanceof HTMLSelectElement)) return control.defaultValue;
  const options = [...control.options];
  return (options.find((one) => one.defaultSelected) ?? options[0])?.value ?? "";
}
