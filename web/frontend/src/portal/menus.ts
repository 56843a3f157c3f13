/** Closes an open menu (`<details class="me">`) by Escape or by a click elsewhere. */
export function closeMenusOnEscape(): void {
  const close = (except: Node | null): void => {
    for (const menu of document.querySelectorAll<HTMLDetailsElement>("details.me[open]")) {
      if (except === null || !menu.contains(except)) menu.open = false;
    }
  };
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") close(null);
  });
  document.addEventListener("click", (event) => close(event.target as Node));
}
