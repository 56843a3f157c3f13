// Say so when the box has not answered for a while. A request may also wait in the browser, because
// it opens at most six connections to the box.

const SLOW_MS = 3000;
const timers = new Set<number>();
let late = 0;

/** Show the notice while requests, links and forms wait. Call it after all other listeners. */
export function showWaiting(): void {
  const ends = new WeakMap<EventTarget, () => void>();
  document.addEventListener("htmx:before:request", ({ target }) => {
    if (target) ends.set(target, begin());
  });
  document.addEventListener("htmx:finally:request", ({ target }) => target && ends.get(target)?.());
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
  });
}

/** Call the box as `fetch` does. */
export async function ask(url: string, init?: RequestInit): Promise<Response> {
  const end = begin();
  try {
    return await fetch(url, init);
  } finally {
    end();
  }
}

function begin(): () => void {
  let isLate = false;
  const timer = window.setTimeout(() => {
    isLate = timers.delete(timer);
    show((late += 1));
  }, SLOW_MS);
  timers.add(timer);
  return () => {
    clearTimeout(timer);
    timers.delete(timer);
    if (isLate) show((late = Math.max(0, late - 1)));
    isLate = false;
  };
}

function show(requests: number): void {
  const notice = document.querySelector<HTMLElement>("[data-waiting]");
  if (notice) notice.hidden = requests === 0;
}
