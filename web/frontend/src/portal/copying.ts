/** `<button data-copy="#id" data-copied="Copied">` copies the text of that element. */
export function copyOnClick(): void {
  document.addEventListener("click", (event) => {
    const button = (event.target as Element).closest<HTMLElement>("[data-copy]");
    const source = button && document.querySelector(button.dataset["copy"] ?? "");
    if (!button || !source) return;
    void navigator.clipboard.writeText(source.textContent?.trim() ?? "").then(() => {
      button.textContent = button.dataset["copied"] ?? button.textContent;
    });
  });
}
