// What was done is said once: not beside what comes of the next thing, nor when the page is loaded
// again.

export function sayNotesOnce(): void {
  document.addEventListener("submit", ({ target }) => {
    if (!(target instanceof HTMLFormElement) || target.method !== "post") return;
    document.querySelector("main > .note")?.remove();
  });
  const here = new URL(location.href);
  if (!here.searchParams.has("note")) return;
  here.searchParams.delete("note");
  history.replaceState(history.state, "", here);
}
