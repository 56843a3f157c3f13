/**
 * The guest's card works without this. With it the screen stays awake while the pass shows, a tap
 * fills the screen with the code, the card follows what happens to the reservation, the phone
 * keeps it for the time without network, and sharing opens the phone's own sheet.
 */

const QUICK = 5_000; // how often an open card asks whether it is still so, at first
const CALM = 20_000; // and after three minutes
const QUICK_FOR = 36;
const OURS = "Venuebox-Link-Ends"; // a header of the box's own answers

let asked = 0;
let timer: ReturnType<typeof setTimeout> | undefined;
let lock: WakeLockSentinel | undefined;

const card = (): HTMLElement | null => document.querySelector<HTMLElement>("[data-card]");
const pass = (): HTMLElement | null => document.querySelector<HTMLElement>("[data-pass]");
const isSeen = (): boolean => document.visibilityState === "visible";

async function keepAwake(): Promise<void> {
  if (!isSeen() || !pass()) return;
  try {
    lock = await navigator.wakeLock?.request("screen");
  } catch {
    // A phone that saves its battery says no; the pass shows all the same.
  }
}

/** The code alone, white and as large as the screen: the brightest that a page can be. */
async function fillScreen(): Promise<void> {
  document.documentElement.toggleAttribute("data-full", true);
  try {
    await document.documentElement.requestFullscreen?.({ navigationUI: "hide" });
  } catch {
    // A phone without it shows the code as large as the page.
  }
}

async function leaveScreen(): Promise<void> {
  document.documentElement.removeAttribute("data-full");
  if (document.fullscreenElement) await document.exitFullscreen();
}

/** Takes the parts of a newer page over, and leaves the rest alone. */
function renew(html: string): void {
  const newer = new DOMParser().parseFromString(html, "text/html");
  const [here, there] = [document.querySelector(".guest"), newer.querySelector(".guest")];
  if (!here || !there) return;
  here.replaceChildren(...there.childNodes);
  if (!pass()) {
    void leaveScreen();
    void lock?.release();
  }
  // Whoever only hears the page hears how it now stands.
  document.querySelector(".chip")?.setAttribute("role", "status");
}

function sayOffline(isOffline: boolean): void {
  const note = document.querySelector<HTMLElement>("[data-offline]");
  if (note) note.hidden = !isOffline;
}

async function ask(): Promise<void> {
  const mark = card()?.dataset["mark"];
  if (!mark || !isSeen()) return;
  asked += 1;
  try {
    const answer = await fetch(location.href, {
      cache: "no-store",
      headers: { "If-None-Match": mark },
    });
    const isOurs = answer.status === 304 || answer.headers.has(OURS);
    sayOffline(!isOurs);
    if (!isOurs) return; // a tunnel's error, or a network that wants a sign-in: the card stays
    if (answer.ok) renew(await answer.text());
    else if (answer.status === 404) location.reload();
  } catch {
    sayOffline(true);
  }
}

/** Nothing is asked while nobody looks. */
function askLater(): void {
  clearTimeout(timer);
  if (!isSeen()) return;
  timer = setTimeout(
    () => void ask().finally(askLater),
    asked < QUICK_FOR ? QUICK : CALM,
  );
}

/** Lets the phone keep this card and the files that it needs, and nothing else. */
async function keepCard(script: string): Promise<void> {
  await navigator.serviceWorker.register(script);
  const registration = await navigator.serviceWorker.getRegistration(script);
  const worker = registration?.active ?? registration?.waiting ?? registration?.installing;
  const files = [...document.querySelectorAll<HTMLElement>("link[href], script[src]")].map(
    (each) => each.getAttribute("href") ?? each.getAttribute("src") ?? "",
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

/** What this device keeps of every card goes with "forget all this". */
async function forgetCards(): Promise<void> {
  const names = (await caches.keys()).filter((name) => name.startsWith("venuebox-guest-"));
  await Promise.all(names.map((name) => caches.delete(name)));
}

document.addEventListener("click", (event) => {
  if (document.documentElement.hasAttribute("data-full")) {
    event.preventDefault();
    return void leaveScreen();
  }
  const target = event.target instanceof Element ? event.target : null;
  if (target?.closest("[data-pass]")) {
    event.preventDefault();
    return void fillScreen();
  }
  const button = target?.closest<HTMLElement>("[data-share]");
  // Neither is there on a page that came over plain http: the mail it is.
  if (!button || (typeof navigator.share !== "function" && !navigator.clipboard)) return;
  event.preventDefault();
  // Whoever closes the sheet again has changed their mind: that is no error.
  void share(button).catch(() => undefined);
});

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") void leaveScreen();
});

document.addEventListener("fullscreenchange", () => {
  if (!document.fullscreenElement) document.documentElement.removeAttribute("data-full");
});

document.querySelector("[data-forget]")?.addEventListener("submit", () => {
  if ("caches" in window) void forgetCards();
});

const worker = card()?.dataset["worker"];
if (worker) {
  void keepAwake();
  askLater();
  document.addEventListener("visibilitychange", () => {
    // The browser lets go of the lock whenever the page is hidden.
    void keepAwake();
    if (isSeen()) void ask().finally(askLater);
  });
  addEventListener("online", () => void ask());
  addEventListener("offline", () => sayOffline(true));
  if ("serviceWorker" in navigator) void keepCard(worker).catch(() => undefined);
}

export {};
