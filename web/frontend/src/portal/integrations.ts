/**
 * A secret is said once: when its page is left it is taken out of it, so that neither the back
 * button nor a page that the browser keeps for it shows it again.
 */
export function forgetSecrets(): void {
  window.addEventListener("pagehide", () => {
    for (const box of document.querySelectorAll("[data-once]")) box.remove();
  });
}
