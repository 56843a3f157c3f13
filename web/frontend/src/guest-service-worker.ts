/**
 * Caches the latest version of each card that the guest has opened, with its files, for offline
 * use. Only responses from the box replace a cached card, not error pages from a tunnel or a
 * captive portal. If the box responds with 404, the link is not valid any more, and the card is
 * deleted.
 */

interface Shell {
  name: string;
  scope: string;
}

interface Extendable extends Event {
  waitUntil(work: Promise<unknown>): void;
}

interface Fetching extends Extendable {
  request: Request;
  respondWith(answer: Promise<Response>): void;
}

interface Message extends Extendable {
  data: { keep?: string; files?: string[] };
}

interface WorkerScope {
  shell: Shell;
  skipWaiting(): Promise<void>;
  clients: { claim(): Promise<void> };
  addEventListener(kind: "install" | "activate", listener: (event: Extendable) => void): void;
  addEventListener(kind: "message", listener: (event: Message) => void): void;
  addEventListener(kind: "fetch", listener: (event: Fetching) => void): void;
}

const TIMEOUT_MS = 3_000; // wait this long for the box before showing the cached card
const EXPIRY_HEADER = "Venuebox-Link-Ends"; // a header that only the box's responses have

const worker = globalThis as unknown as WorkerScope;
const { name, scope } = worker.shell;
const isCard = (path: string): boolean =>
  path.startsWith(scope) && /^[\w-]{20,100}$/.test(path.slice(scope.length));
const isFromBox = (answer: Response): boolean => answer.headers.has(EXPIRY_HEADER);
const isExpired = (answer: Response): boolean =>
  Number(answer.headers.get(EXPIRY_HEADER) ?? 0) <= Date.now();

let lastChange: Promise<void> = Promise.resolve();

/** Run one change at a time, so that no card is added to a cache that is being deleted. */
function runExclusively(change: (cache: Cache) => Promise<unknown>): Promise<void> {
  const done = lastChange.then(async () => void (await change(await caches.open(name))));
  lastChange = done.catch(() => undefined);
  return done;
}

/**
 * Cache a card under its path without the query, so that only the language last shown is cached.
 * After a 404, delete the card.
 */
async function remember(path: string, answer: Response): Promise<void> {
  if (!isFromBox(answer)) return;
  if (answer.status === 404) await runExclusively((cache) => cache.delete(path));
  else if (answer.ok) await runExclusively((cache) => cache.put(path, answer));
}

/** Delete expired cards. If no card is left, delete the whole cache. */
async function deleteExpired(cache: Cache): Promise<void> {
  let left = 0;
  for (const request of await cache.keys()) {
    if (!isCard(new URL(request.url).pathname)) continue;
    const cached = await cache.match(request);
    if (cached && !isExpired(cached)) left += 1;
    else await cache.delete(request);
  }
  if (left === 0) await caches.delete(name);
}

async function keep(page: string, files: string[]): Promise<void> {
  const path = new URL(page, location.origin).pathname;
  if (!isCard(path)) return;
  const answer = await fetch(page, { cache: "no-store" });
  if (!isFromBox(answer)) return;
  await remember(path, answer);
  const cache = await caches.open(name);
  for (const file of files) if (!(await cache.match(file))) await cache.add(file);
}

async function withTimeout(milliseconds: number, answer: Promise<Response>): Promise<Response> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error("late")), milliseconds);
  });
  return Promise.race([answer, late]).finally(() => clearTimeout(timer));
}

/** Respond with the box's page, or with the cached page if the box does not respond in time. */
async function card(event: Fetching, path: string): Promise<Response> {
  const cached = await (await caches.open(name)).match(path);
  const asked = fetch(event.request).then((answer) => {
    event.waitUntil(remember(path, answer.clone()));
    return answer;
  });
  if (!cached || isExpired(cached) || event.request.mode !== "navigate") return asked;
  event.waitUntil(asked.catch(() => undefined));
  const choose = (answer: Response): Response => (isFromBox(answer) ? answer : cached);
  return withTimeout(TIMEOUT_MS, asked).then(choose, () => cached);
}

async function file(request: Request): Promise<Response> {
  const cache = await caches.open(name);
  return (await cache.match(request)) ?? fetch(request);
}

worker.addEventListener("install", (event) => event.waitUntil(worker.skipWaiting()));
worker.addEventListener("activate", (event) =>
  event.waitUntil(runExclusively(deleteExpired).then(() => worker.clients.claim())),
);
worker.addEventListener("message", (event) => {
  const { keep: page, files = [] } = event.data;
  if (!page) return;
  const done = runExclusively(deleteExpired).then(() => keep(page, files));
  event.waitUntil(done.catch(() => undefined));
});
worker.addEventListener("fetch", (event) => {
  const { request } = event;
  const url = new URL(request.url);
  if (request.method !== "GET" || url.origin !== location.origin) return;
  if (isCard(url.pathname)) event.respondWith(card(event, url.pathname));
  else if (url.pathname.startsWith("/static/")) event.respondWith(file(request));
});

export {};
