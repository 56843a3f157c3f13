/**
 * The guest's card. It also works without this script. The script keeps the screen on while the
 * pass is shown, shows the code full screen after a tap, updates the card when the reservation
 * changes, makes it available offline, and opens the phone's share sheet.
 */

import { sendForm } from "./shared/send_form";

const FAST_MS = 5_000; // interval of the first requests for updates, in ms
const SLOW_MS = 20_000; // interval of the requests after three minutes, in ms
const FAST_REQUESTS = 36;
const EXPIRY_HEADER = "Venuebox-Link-Ends"; // a header that only the box's responses have

let requests = 0;
let timer: ReturnType<typeof setTimeout> | undefined;
let lock: WakeLockSentinel | undefined;

const card = (): HTMLElement | null => document.querySelector<HTMLElement>("[data-card]");
const pass = (): HTMLElement | null => document.querySelector<HTMLElement>("[data-pass]");
const isVisible = (): boolean => document.visibilityState === "visible";

async function keepScreenOn(): Promise<void> {
  if (!isVisible() || !pass()) return;
  try {
    lock = await navigator.wakeLock?.request("screen");
  } catch {
    // The browser may refuse the lock, for example in battery saving mode.
  }
}

/** Show the code full screen on white, for the greatest brightness. */
async function showFullScreen(): Promise<void> {
  document.documentElement.toggleAttribute("data-full", true);
  try {
    await document.documentElement.requestFullscreen?.({ navigationUI: "hide" });
  } catch {
    // Without the full-screen API, the code fills the page.
  }
}

async function leaveFullScreen(): Promise<void> {
  document.documentElement.removeAttribute("data-full");
  if (document.fullscreenElement) await document.exitFullscreen();
}

/** Replace the card with the card from a newer page. */
function replaceCard(html: string): void {
  const newer = new DOMParser().parseFromString(html, "text/html");
  const [here, there] = [document.querySelector(".guest"), newer.querySelector(".guest")];
  if (!here || !there) return;
  here.replaceChildren(...there.childNodes);
  if (!pass()) {
    void leaveFullScreen();
    void lock?.release();
  }
  // Let screen readers announce the new status.
  document.querySelector(".chip")?.setAttribute("role", "status");
}

function showOffline(isOffline: boolean): void {
  const note = document.querySelector<HTMLElement>("[data-offline]");
  if (note) note.hidden = !isOffline;
}

async function update(): Promise<void> {
  const mark = card()?.dataset["mark"];
  if (!mark || !isVisible()) return;
  requests += 1;
  try {
    const answer = await fetch(location.href, {
      cache: "no-store",
      headers: { "If-None-Match": mark },
    });
    const isFromBox = answer.status === 304 || answer.headers.has(EXPIRY_HEADER);
    showOffline(!isFromBox);
    if (!isFromBox) return; // other responses come from a tunnel or a captive portal, for example
    if (answer.ok) replaceCard(await answer.text());
    else if (answer.status === 404) location.reload();
  } catch {
    showOffline(true);
  }
}

/** Schedule the next request, unless the page is hidden. */
function scheduleUpdate(): void {
  clearTimeout(timer);
  if (!isVisible()) return;
  timer = setTimeout(
    () => void update().finally(scheduleUpdate),
    requests < FAST_REQUESTS ? FAST_MS : SLOW_MS,
  );
}

/** Let the service worker cache this card and its files. */
async function cacheCard(script: string): Promise<void> {
  await navigator.serviceWorker.register(script);
  const registration = await navigator.serviceWorker.getRegistration(script);
  const worker = registration?.active ?? registration?.waiting ?? registration?.installing;
  const files = [...document.querySelectorAll<HTMLElement>("link[href], script[src]")].map(
    (element) => element.getAttribute("href") ?? element.getAttribute("src") ?? "",
  );
  worker?.postMessage({ keep: location.pathname + location.search, files });
}

async function share(button: HTMLElement): Promise<void> {
  const { share: url = "", title = "", text = "" } = button.dataset;
  if (typeof navigator.share === "function") return navigator.share({ title, text, url });
  await navigator.clipboard.writeText(`${text} ${url}`);
  const label = button.querySelector<HTMLElement>("[data-label]");
  if (label) label.textContent = label.dataset["copied"] ?? label.textContent;
}

/** Send the form, and show the page that answers it. */
async function submitInPlace(form: HTMLFormElement): Promise<void> {
  const answer = await sendForm(form);
  if (answer?.redirected) location.assign(answer.url);
  else if (answer) replaceCard(await answer.text());
}

/** Delete all cached cards. */
async function deleteCards(): Promise<void> {
  const names = (await caches.keys()).filter((name) => name.startsWith("venuebox-guest-"));
  await Promise.all(names.map((name) => caches.delete(name)));
}

document.addEventListener("click", (event) => {
  if (document.documentElement.hasAttribute("data-full")) {
    event.preventDefault();
    return void leaveFullScreen();
  }
  const target = event.target instanceof Element ? event.target : null;
  if (target?.closest("[data-pass]")) {
    event.preventDefault();
    return void showFullScreen();
  }
  const button = target?.closest<HTMLElement>("[data-share]");
  // Over plain http, there is no share sheet or clipboard. The link then opens the mail app.
  if (!button || (typeof navigator.share !== "function" && !navigator.clipboard)) return;
  event.preventDefault();
  // Closing the share sheet rejects the promise, which is not an error.
  void share(button).catch(() => undefined);
});

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") void leaveFullScreen();
});

document.addEventListener("fullscreenchange", () => {
  if (!document.fullscreenElement) document.documentElement.removeAttribute("data-full");
});

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (!(form instanceof HTMLFormElement) || !("inPlace" in form.dataset)) return;
  event.preventDefault();
  void submitInPlace(form);
});

document.querySelector("[data-forget]")?.addEventListener("submit", () => {
  if ("caches" in window) void deleteCards();
});

const worker = card()?.dataset["worker"];
if (worker) {
  void keepScreenOn();
  scheduleUpdate();
  document.addEventListener("visibilitychange", () => {
    // The browser released the wake lock when the page was hidden, so request it again.
    void keepScreenOn();
    if (isVisible()) void update().finally(scheduleUpdate);
  });
  addEventListener("online", () => void update());
  addEventListener("offline", () => showOffline(true));
  if ("serviceWorker" in navigator) void cacheCard(worker).catch(() => undefined);
}
