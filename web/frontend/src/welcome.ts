/**
 * The welcome page works without this: it saves pasting the link, whose secret stands behind the #
 * and is therefore not sent along when the page is opened.
 */

function takeSecret(): void {
  const field = document.querySelector<HTMLInputElement>("[data-link]");
  const secret = location.hash.slice(1);
  if (!field || !secret) return;
  field.value = secret;
  field.closest<HTMLElement>("[data-link-field]")?.setAttribute("hidden", "");
}

takeSecret();
// A link opened over the page that is already there changes nothing but what follows the #.
addEventListener("hashchange", takeSecret);

export {};
