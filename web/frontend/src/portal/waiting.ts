// Show that a request is under way, and say so when the box has not answered for a while. A request
// may also wait in the browser, because it opens at most six connections to the box.

const BUSY_MS = 300;
const SLOW_MS = 5000;
const DEADLINE_MS = 60_000;
const timers = new Set<number>();
let busy = 0;
let late = 0;

/** Show the notice while requests, links and forms wait. Call it after all other listeners. */
export function showWaiting(): void {
  // An element that is replaced meanwhile tells nobody that its request has ended, so ask the request.
  document.addEventListener("htmx:before:request", (event) => {
    const ctx = event.detail.ctx as unknown as { fetch: typeof fetch };
    const send = ctx.fetch;
    ctx.fetch = (url, init) => send(url, init).finally(begin());
  });
  document.addEventListener("submit", (event) => event.defaultPrevented || begin());
  document.addEventListener("click", (event) => {
    const link = (event.target as Element).closest<HTMLAnchorElement>("a[href]");
    if (!link || event.defaultPrevented || event.ctrlKey || event.metaKey || event.shiftKey) return;
    const isHere = link.href.replace(/#.*/, "") === location.href.replace(/#.*/, "");
    if (!isHere && !link.target && !link.hasAttribute("download")) begin();
  });
  // The next page has arrived. The browser may keep this one and show it again.
  addEventListener("pagehide", () => {
    for (const timer of timers) clearTimeout(timer);
    timers.clear();
    show((late = 0));
    spin((busy = 0));
  });
}

/** Call the box as `fetch` does, but for a minute at most. */
export async function ask(url: string, init?: RequestInit): Promise<Response> {
  const end = begin();
  try {
    return await fetch(url, { ...init, signal: AbortSignal.timeout(DEADLINE_MS) });
  } finally {
    end();
  }
}

function begin(): () => void {
  const stops = [
    later(BUSY_MS, (more) => spin((busy = Math.max(0, busy + more)))),
    later(SLOW_MS, (more) => show((late = Math.max(0, late + more)))),
  ];
  return () => stops.forEach((stop) => stop());
}

/** Call `count(1)` after `delay`, and `count(-1)` once it is stopped. */
function later(delay: number, count: (more: number) => void): () => void {
  let isCounted = false;
  const timer = window.setTimeout(() => {
    isCounted = timers.delete(timer);
    count(1);
  }, delay);
  timers.add(timer);
  return () => {
    clearTimeout(timer);
    timers.delete(timer);
    if (isCounted) count(-1);
    isCounted = false;
  };
}

function spin(requests: number): void {
  document.body.classList.toggle("waits", requests > 0);
}

function show(requests: number): void {
  const notice = document.querySelector<HTMLElement>("[data-waiting]");
  if (notice) notice.hidden = requests === 0;
}
