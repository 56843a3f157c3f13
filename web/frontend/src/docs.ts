/**
 * The documentation pages. On the API reference page, start Swagger UI in `#swagger-ui` with the
 * OpenAPI document at `data-url`. That page loads `docs/swagger-ui-bundle.js` first, which defines
 * `SwaggerUIBundle`. On other pages, show example programs as tabs and add copy buttons.
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
    // Do not use the public validator, because it would receive this box's address.
    validatorUrl: null,
    deepLinking: true,
    displayRequestDuration: true,
    tryItOutEnabled: true,
    // Do not store the partner's API key in the browser.
    persistAuthorization: false,
  });
}

/** Set Swagger UI's dark mode class if the system prefers dark mode. */
function followSystemColours(): void {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const apply = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
  dark.addEventListener("change", apply);
  apply();
}

type Tab = { button: HTMLButtonElement; panel: HTMLElement; language: string };
const groups: Tab[][] = [];

/** Show the programs in `language` in every group that has it. */
function showLanguage(language: string): void {
  for (const group of groups) {
    if (!group.some((tab) => tab.language === language)) continue;
    for (const { button, panel, language: own } of group) {
      const chosen = own === language;
      button.setAttribute("aria-selected", String(chosen));
      button.tabIndex = chosen ? 0 : -1;
      panel.hidden = !chosen;
    }
  }
}

function makeTabs(programs: HTMLElement, number: number): void {
  const panels = [...programs.querySelectorAll<HTMLElement>(".program")];
  if (panels.length < 2) return;
  const bar = document.createElement("div");
  bar.className = "tabs";
  bar.setAttribute("role", "tablist");
  bar.setAttribute("aria-label", "Language of the example");
  const group = panels.map((panel, index): Tab => {
    const language = panel.dataset["language"] ?? "";
    const button = document.createElement("button");
    const heading = panel.querySelector(".program-name");
    button.type = "button";
    button.id = `tab-${number}-${index}`;
    button.textContent = heading?.firstChild?.textContent?.trim() ?? language;
    button.setAttribute("role", "tab");
    panel.id = `panel-${number}-${index}`;
    panel.setAttribute("role", "tabpanel");
    panel.setAttribute("aria-labelledby", button.id);
    button.setAttribute("aria-controls", panel.id);
    button.addEventListener("click", () => showLanguage(language));
    return { button, panel, language };
  });
  bar.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (step === undefined) return;
    const at = group.findIndex((tab) => tab.button === document.activeElement);
    const next = group[(at + step + group.length) % group.length];
    next?.button.focus();
    if (next) showLanguage(next.language);
  });
  bar.append(...group.map((tab) => tab.button));
  programs.prepend(bar);
  groups.push(group);
}

function addCopyButton(pre: HTMLPreElement): void {
  const frame = document.createElement("div");
  const button = document.createElement("button");
  frame.className = "copies";
  button.className = "copy";
  button.type = "button";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(pre.textContent ?? "");
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = "Copy"), 2000);
  });
  pre.replaceWith(frame);
  frame.append(pre, button);
}

/** On a narrow screen, close the two lists of links above the text. */
function closeLists(): void {
  if (!matchMedia("(max-width: 59.99rem)").matches) return;
  const lists = document.querySelectorAll<HTMLDetailsElement>(".ways nav > details");
  for (const list of lists) list.open = false;
}

const place = document.querySelector<HTMLElement>("#swagger-ui");
const url = place?.dataset["url"];
if (place && url) {
  followSystemColours();
  start(place, url);
} else {
  closeLists();
  // Browsers allow the clipboard only with https or on localhost.
  const samples = document.querySelectorAll<HTMLPreElement>(".prose pre");
  if (navigator.clipboard) samples.forEach(addCopyButton);
  document.querySelectorAll<HTMLElement>(".programs").forEach(makeTabs);
  for (const group of groups) if (group[0]) showLanguage(group[0].language);
}

export {};
