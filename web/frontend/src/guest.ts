/**
 * The guest's card works without this: it keeps the screen awake while the pass shows, and lets
 * the share button open the phone's own sheet instead of a mail.
 */

async function keepAwake(): Promise<void> {
  if (document.visibilityState !== "visible") return;
  try {
    await navigator.wakeLock?.request("screen");
  } catch {
    // A phone that saves its battery says no; the pass shows all the same.
  }
}

async function share(button: HTMLElement): Promise<void> {
  const { share: url = "", title = "", text = "" } = button.dataset;
  if (typeof navigator.share === "function") return navigator.share({ title, text, url });
  await navigator.clipboard.writeText(`${text} ${url}`);
  const label = button.querySelector<HTMLElement>("[data-label]");
  if (label) label.textContent = label.dataset["copied"] ?? label.textContent;
}

if (document.querySelector("[data-pass]")) {
  void keepAwake();
  // The browser lets go of the lock whenever the page is hidden.
  document.addEventListener("visibilitychange", () => void keepAwake());
}

const button = document.querySelector<HTMLAnchorElement>("[data-share]");
button?.addEventListener("click", (event) => {
  // Neither is there on a page that came over plain http: the mail it is.
  if (typeof navigator.share !== "function" && !navigator.clipboard) return;
  event.preventDefault();
  // Whoever closes the sheet again has changed their mind: that is no error.
  void share(button).catch(() => undefined);
});

export {};
