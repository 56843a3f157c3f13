/**
 * Starts Swagger UI on `#swagger-ui`, for the description its `data-url` names.
 * The page loads `docs/swagger-ui-bundle.js` first; that script defines the global.
 */

interface SwaggerOptions {
  domNode: HTMLElement;
  url: string;
  validatorUrl: null;
  deepLinking: boolean;
  displayRequestDuration: boolean;
  tryItOutEnabled: boolean;
  persistAuthorization: boolean;
}

declare const SwaggerUIBundle: (options: SwaggerOptions) => unknown;

function start(place: HTMLElement, url: string): void {
  SwaggerUIBundle({
    domNode: place,
    url,
    // The public validator would be told where this box lives.
    validatorUrl: null,
    deepLinking: true,
    displayRequestDuration: true,
    tryItOutEnabled: true,
    // A partner's key must not stay behind in the browser.
    persistAuthorization: false,
  });
}

/** Swagger UI is dark when told so by a class; the visitor's system decides. */
function followSystemColours(): void {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const apply = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
  dark.addEventListener("change", apply);
  apply();
}

const place = document.querySelector<HTMLElement>("#swagger-ui");
const url = place?.dataset["url"];
followSystemColours();
if (place && url) start(place, url);

export {};
