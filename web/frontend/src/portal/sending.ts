// A form that is on its way is not sent again: whoever clicks twice while the box is slow means one
// thing. It may be sent again once there is an answer, or when none came for a while.

const PATIENCE_MS = 10_000;
let onTheirWay = new WeakSet<EventTarget>();

export function sendOnce(): void {
  // Before anybody else hears of it, htmx too: it would send the second one after the first.
  document.addEventListener("submit", hold, true);
  document.addEventListener("htmx:finally:request", ({ target }) => {
    if (target) onTheirWay.delete(target);
  });
  window.addEventListener("pageshow", () => (onTheirWay = new WeakSet()));
}

/** There is an answer to it. */
export function release(form: HTMLFormElement): void {
  onTheirWay.delete(form);
}

function hold(event: SubmitEvent): void {
  const form = event.target;
  if (!(form instanceof HTMLFormElement) || form.method !== "post") return;
  if (onTheirWay.has(form)) {
    event.preventDefault();
    event.stopImmediatePropagation();
    return;
  }
  onTheirWay.add(form);
  window.setTimeout(() => onTheirWay.delete(form), PATIENCE_MS);
}
