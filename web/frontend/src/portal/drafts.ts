// Drafts. What is typed in a form is kept in the tab until it is saved or discarded. So it outlives
// another page, the end of the session, and a box that does not answer. Passwords and codes are not
// kept. Forms with the same `data-keep` share a draft.

import { changedInputs, fillIn, type SavedInput } from "./unsaved_input";

const KEPT = 'main form[method="post"]:not([data-plain])';
const PREFIX = "draft ";
const LIFETIME_MS = 12 * 3_600_000; // as long as a session without use

interface Draft {
  /** In ms since 1970. */
  at: number;
  inputs: SavedInput[];
}

export function keepDrafts(): void {
  const mine = `${PREFIX}${person()} `;
  for (const key of stored()) if (!key.startsWith(mine)) sessionStorage.removeItem(key);
  for (const kind of ["input", "change"]) {
    document.addEventListener(kind, ({ target }) => {
      const form = (target as Element).closest<HTMLFormElement>(KEPT);
      if (form) storeDraft(form);
    });
  }
  document.addEventListener("submit", ({ target }) => {
    if ((target as Element).matches("form[action$='/portal/sign-out']")) {
      for (const key of stored()) sessionStorage.removeItem(key);
    }
  });
  // The drawer's forms are sent by htmx.
  document.addEventListener("htmx:before:swap", (event) => {
    const { ctx } = (event as CustomEvent<{ ctx?: Answered }>).detail;
    const isRefused = (ctx?.response?.status ?? 500) >= 400;
    if (ctx?.sourceElement instanceof HTMLFormElement && !isRefused) forgetDraft(ctx.sourceElement);
  });
}

interface Answered {
  sourceElement?: Element;
  response?: { status: number };
}

/** Enter the drafts of the forms in `root`, and say so at the top of each. */
export function restoreDrafts(root: ParentNode): void {
  for (const form of root.querySelectorAll<HTMLFormElement>("form")) {
    if (!form.matches(KEPT)) continue;
    const draft = JSON.parse(sessionStorage.getItem(keyOf(form)) ?? "null") as Draft | null;
    if (!draft) continue;
    if (Date.now() - draft.at > LIFETIME_MS) forgetDraft(form);
    else if (draft.inputs.map((input) => fillIn(form, input)).includes(true)) announce(form);
  }
}

/** Delete the form's draft, because it was saved. */
export function forgetDraft(form: HTMLFormElement): void {
  sessionStorage.removeItem(keyOf(form));
}

function storeDraft(form: HTMLFormElement): void {
  const draft: Draft = { at: Date.now(), inputs: changedInputs(form) };
  if (draft.inputs.length > 0) sessionStorage.setItem(keyOf(form), JSON.stringify(draft));
  else forgetDraft(form);
}

function announce(form: HTMLFormElement): void {
  const { draft, discard } = document.querySelector<HTMLElement>("#main")?.dataset ?? {};
  const notice = document.createElement("p");
  notice.className = "warning draft";
  notice.setAttribute("role", "status");
  const button = document.createElement("button");
  button.type = "button";
  button.className = "button quiet-button small-button";
  button.textContent = discard ?? "";
  button.addEventListener("click", () => {
    forgetDraft(form);
    notice.remove();
    form.reset();
    refreshOffer(form);
  });
  notice.append(draft ?? "", " ", button);
  form.querySelector(".draft")?.remove();
  form.prepend(notice);
  refreshOffer(form);
}

/** Load what the form offers for these values, such as the tables that are free on a date. */
function refreshOffer(form: HTMLFormElement): void {
  form.querySelector("[hx-trigger=change]")?.dispatchEvent(new Event("change", { bubbles: true }));
}

/**
 * Return where the form's draft is stored. A form that its own page receives, such as a new
 * reservation, has a draft for each address of the page: for each evening, table and time.
 */
function keyOf(form: HTMLFormElement): string {
  const { pathname } = new URL(form.getAttribute("action") ?? "", location.href);
  const query = new URLSearchParams(pathname === location.pathname ? location.search : "");
  for (const name of ["note", "lang"]) query.delete(name);
  return `${PREFIX}${person()} ${form.dataset["keep"] || `${pathname}?${query}`}`;
}

function person(): string {
  return document.querySelector<HTMLElement>("#main")?.dataset["person"] ?? "";
}

function stored(): string[] {
  return Object.keys(sessionStorage).filter((key) => key.startsWith(PREFIX));
}
