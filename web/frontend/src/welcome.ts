/**
 * The welcome page. Fill in the secret from the URL fragment, which is not sent to the server.
 * Without this script, the user must paste the link.
 */

function takeSecret(): void {
  const field = document.querySelector<HTMLInputElement>("[data-link]");
  const secret = location.hash.slice(1);
  if (!field || !secret) return;
  field.value = secret;
  field.closest<HTMLElement>("[data-link-field]")?.setAttribute("hidden", "");
}

/** Keep the secret when the page is shown in another language. */
function keepSecret(): void {
  const field = document.querySelector<HTMLInputElement>("[data-link]");
  for (const link of document.querySelectorAll<HTMLAnchorElement>(".languages a")) {
    link.addEventListener("click", () => (link.hash = field?.value ?? ""));
  }
}

takeSecret();
keepSecret();
// Opening another link to this page changes only the fragment, so the page is not reloaded.
addEventListener("hashchange", takeSecret);

export {};
