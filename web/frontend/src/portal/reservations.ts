/** The free tables are asked for again while somebody goes on: what was chosen stays chosen. */
export function keepTheChosenTable(): void {
  let chosen = "";
  let hadFocus = false;
  const tables = (): HTMLSelectElement | null => document.querySelector("#new-table");
  document.addEventListener("htmx:before:swap", () => {
    chosen = tables()?.value ?? "";
    hadFocus = tables() !== null && document.activeElement === tables();
  });
  document.addEventListener("htmx:after:swap", () => {
    const fresh = tables();
    if (!fresh) return;
    if (chosen && [...fresh.options].some((one) => one.value === chosen)) fresh.value = chosen;
    if (hadFocus) fresh.focus();
  });
}
