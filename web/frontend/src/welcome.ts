/**
 * The welcome page works without this: it saves pasting the link, whose secret stands behind the #
 * and is therefore not sent along when the page is opened.
 */

const field = document.querySelector<HTMLInputElement>("[data-link]");
const secret = location.hash.slice(1);

if (field && secret) {
  field.value = secret;
  field.closest<HTMLElement>("[data-link-field]")?.setAttribute("hidden", "");
}

export {};
