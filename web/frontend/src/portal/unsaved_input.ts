// Unsaved input in the drawer's forms. It is kept while another form of the reservation is sent and
// while the drawer shows another reservation. A reload of the page waits until no input would be
// lost. Long forms also keep it longer, see drafts.ts.

type Control = HTMLInputElement | HTMLTextAreaElement | HTMLSelectElement;

export interface SavedInput {
  action: string;
  name: string;
  value: string;
  checked: boolean;
  /** The control's value when the page was loaded, or null if the form was refused. */
  was: string | null;
}

interface Answered {
  ctx?: { sourceElement?: Element; response?: { status: number } };
}

const CONTROLS = "input:not([type=hidden], [type=password], [type=file], [autocomplete=one-time-code]), " +
  "textarea, select";
let collected: { reservation: string; inputs: SavedInput[] } | undefined;
/** Unsaved input of reservations that the drawer no longer shows, by reservation id. */
const saved = new Map<string, SavedInput[]>();
let deferred: (() => void) | undefined;

export function keepUnsavedInput(): void {
  document.addEventListener("htmx:before:swap", (event) =>
    collectBeforeSwap(event as CustomEvent<Answered>),
  );
  document.addEventListener("htmx:after:swap", restoreAfterSwap);
  for (const kind of ["htmx:after:swap", "click", "focusout", "keyup"]) {
    document.addEventListener(kind, () => window.setTimeout(runDeferred));
  }
}

/** Whether a form in `detail` has unsaved input or the focus. */
export function hasUnsavedInput(detail: ParentNode): boolean {
  return (
    detail.querySelector("form[data-refused], form :focus") !== null ||
    [...detail.querySelectorAll<Control>(CONTROLS)].some(isChanged)
  );
}

/** Save the input before the drawer shows something else or closes. */
export function saveUnsavedInput(): void {
  const detail = shownDetail();
  if (!detail) return;
  const forms = [...detail.querySelectorAll("form")];
  saved.set(detail.dataset["detail"] ?? "", forms.flatMap(changedInputs));
}

/** Restore the saved input of the reservation that the drawer shows. */
export function restoreUnsavedInput(): void {
  const detail = shownDetail();
  const reservation = detail?.dataset["detail"] ?? "";
  if (detail) applyInputs(detail, saved.get(reservation) ?? []);
  saved.delete(reservation);
}

/** Run `act` as soon as no unsaved input would be lost. A later call replaces an earlier call. */
export function whenNothingUnsaved(act: () => void): void {
  deferred = act;
  runDeferred();
}

function runDeferred(): void {
  const detail = shownDetail();
  if (!deferred || (detail && hasUnsavedInput(detail))) return;
  const act = deferred;
  deferred = undefined;
  act();
}

function shownDetail(): HTMLElement | null {
  return document.querySelector<HTMLElement>("#drawer [data-detail]");
}

/**
 * Before a swap, collect the unsaved input in the reservation's other forms. If the guest was
 * erased, collect nothing.
 */
function collectBeforeSwap(event: CustomEvent<Answered>): void {
  const sent = event.detail.ctx?.sourceElement;
  const detail = sent?.closest<HTMLElement>("[data-detail]");
  collected = undefined;
  if (!detail || !(sent instanceof HTMLFormElement)) return;
  const reservation = detail.dataset["detail"] ?? "";
  const isErased = sent.action.endsWith("/erase");
  if (!detail.isConnected) {
    // The drawer already shows a different reservation. Replace it only if the form was refused.
    const all = isErased ? [] : (saved.get(reservation) ?? []);
    const inputs = all.filter((input) => input.action !== sent.getAttribute("action"));
    saved.set(reservation, inputs);
    if ((event.detail.ctx?.response?.status ?? 0) < 400) return event.preventDefault();
    saveUnsavedInput();
    collected = { reservation, inputs };
  } else if (!isErased) {
    const forms = [...detail.querySelectorAll("form")].filter((form) => form !== sent);
    collected = { reservation, inputs: forms.flatMap(changedInputs) };
  }
}

export function changedInputs(form: HTMLFormElement): SavedInput[] {
  // The values of a refused form differ from the stored ones. In a form with `data-whole`, the box
  // replaces choices while the form is filled in, so what was chosen looks unchanged.
  const isRefused = form.dataset["refused"] !== undefined || "whole" in form.dataset;
  const controls = [...form.querySelectorAll<Control>(CONTROLS)];
  return controls
    .filter((control) => control.name && (isRefused || isChanged(control)))
    .map((control) => ({
      action: form.getAttribute("action") ?? "",
      name: control.name,
      value: control.value,
      checked: control instanceof HTMLInputElement && control.checked,
      was: isRefused ? null : initialValue(control),
    }));
}

function restoreAfterSwap(): void {
  const detail = shownDetail();
  const last = collected;
  collected = undefined;
  if (!detail || !last) return;
  if (detail.dataset["detail"] === last.reservation) applyInputs(detail, last.inputs);
}

function applyInputs(detail: HTMLElement, inputs: SavedInput[]): void {
  const now = detail.dataset["now"] ?? "";
  for (const input of inputs) {
    const form = detail.querySelector<HTMLFormElement>(`form[action="${input.action}"]`);
    const control = form?.querySelector<Control>(`[name="${input.name}"]`);
    if (!form || !control) continue;
    const current = initialValue(control);
    fillIn(form, input);
    // If the stored value has changed in the meantime, show it beside the unsaved input.
    if (!now || control instanceof HTMLSelectElement) continue;
    if (current === input.was || current === input.value) continue;
    const hint = document.createElement("span");
    hint.className = "hint";
    hint.textContent = now.replace("…", current || "–");
    control.after(hint);
  }
}

/** Enter a saved value in the form. Return whether it differs from the value on the page. */
export function fillIn(form: HTMLFormElement, input: SavedInput): boolean {
  const named = [...form.querySelectorAll<Control>(`[name="${CSS.escape(input.name)}"]`)];
  const control = named.find((each) => !isTick(each) || each.value === input.value);
  if (!control) return false;
  if (isTick(control)) control.checked = input.checked;
  else control.value = input.value;
  if (control instanceof HTMLSelectElement && control.value !== input.value) {
    control.add(new Option(input.value, input.value, false, true)); // not offered on this page yet
  }
  if (isChanged(control)) control.closest("details")?.setAttribute("open", "");
  return isChanged(control);
}

function isTick(control: Control): control is HTMLInputElement {
  return control instanceof HTMLInputElement && /^(checkbox|radio)$/.test(control.type);
}

function isChanged(control: Control): boolean {
  if (isTick(control)) return control.checked !== control.defaultChecked;
  return control.value !== initialValue(control);
}

/** Return the control's value when the page was loaded. */
function initialValue(control: Control): string {
  if (!(control instanceof HTMLSelectElement)) return control.defaultValue;
  const options = [...control.options];
  return (options.find((option) => option.defaultSelected) ?? options[0])?.value ?? "";
}
