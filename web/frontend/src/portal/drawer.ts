/** The drawer beside the board: closed by its button or by Escape, the focus goes back. */
export function mindTheDrawer(): void {
  let opener: HTMLElement | null = null;
  const drawer = (): HTMLElement | null => document.querySelector("aside#drawer");
  const close = (): void => {
    drawer()?.replaceChildren();
    opener?.focus();
  };
  document.addEventListener("click", (event) => {
    const at = event.target as Element;
    if (at.closest("[data-close-drawer]")) close();
    const chip = at.closest<HTMLElement>("[data-reservation]");
    if (chip) opener = chip;
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && drawer()?.hasChildNodes()) close();
  });
  document.addEventListener("htmx:after:swap", () => {
    drawer()?.querySelector<HTMLElement>("[data-close-drawer]")?.focus();
  });
}
