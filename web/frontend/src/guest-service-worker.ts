/**
 * Keeps the cards that were opened on this phone, for the time when the box cannot be reached:
 * each page as it was last seen and the files that it needs. Whatever answers in the box's place,
 * a tunnel with an error or a network that wants a sign-in, replaces no card. A card whose link is
 * dead goes at once.
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
  addEventListener(kind: "install" | "activate", hear: (event: Extendable) => void): void;
  addEventListener(kind: "message", hear: (event: Message) => void): void;
  addEventListener(kind: "fetch", hear: (event: Fetching) => void): void;
}

const PATIENCE = 3_000; // for a box that does not answer, when there is a card to show
const ENDS = "Venuebox-Link-Ends"; // on the box's own answers, and on no other

const worker = globalThis as unknown as WorkerScope;
const { name, scope } = worker.shell;
const isCard = (path: string): boolean =>
  path.startsWith(scope) && /^[\w-]{20,100}$/.test(path.slice(scope.length));
const isOurs = (answer: Response): boolean => answer.headers.has(ENDS);
const isOver = (answer: Response): boolean => Number(answer.headers.get(ENDS) ?? 0) <= Date.now();

let turn: Promise<void> = Promise.resolve();

/** One change after the other: a card is not put into a cache that is being deleted. */
function inTurn(change: (cache: Cache) => Promise<unknown>): Promise<void> {
  const done = turn.then(async () => void (await change(await caches.open(name))));
  turn = done.catch(() => undefined);
  return done;
}

/** One card a path: the language in which it was seen last is the one it is kept in. */
async function remember(path: string, answer: Response): Promise<void> {
  if (!isOurs(answer)) return;
  if (answer.status === 404) await inTurn((cache) => cache.delete(path));
  else if (answer.ok) await inTurn((cache) => cache.put(path, answer));
}

/** Cards whose evening is over, and the files that no card needs any more, go. */
async function tidy(cache: Cache): Promise<void> {
  let left = 0;
  for (const request of await cache.keys()) {
    if (!isCard(new URL(request.url).pathname)) continue;
    const kept = await cache.match(request);
    if (kept && !isOver(kept)) left += 1;
    else await cache.delete(request);
  }
  if (left === 0) await caches.delete(name);
}

async function keep(page: string, files: string[]): Promise<void> {
  const path = new URL(page, location.origin).pathname;
  if (!isCard(path)) return;
  const answer = await fetch(page, { cache: "no-store" });
  if (!isOurs(answer)) return;
  await remember(path, answer);
  const cache = await caches.open(name);
  for (const file of files) if (!(await cache.match(file))) await cache.add(file);
}

async function within(milliseconds: number, answer: Promise<Response>): Promise<Response> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error("late")), milliseconds);
  });
  return Promise.race([answer, late]).finally(() => clearTimeout(timer));
}

/** What the box says; what the phone keeps when the box says nothing, or something else does. */
async function card(event: Fetching, path: string): Promise<Response> {
  const kept = await (await caches.open(name)).match(path);
  const asked = fetch(event.request).then((answer) => {
    event.waitUntil(remember(path, answer.clone()));
    return answer;
  });
  if (!kept || isOver(kept) || event.request.mode !== "navigate") return asked;
  event.waitUntil(asked.catch(() => undefined));
  return within(PATIENCE, asked).then((answer) => (isOurs(answer) ? answer : kept), () => kept);
}

async function file(request: Request): Promise<Response> {
  const cache = await caches.open(name);
  return (await cache.match(request)) ?? fetch(request);
}

worker.addEventListener("install", (event) => event.waitUntil(worker.skipWaiting()));
worker.addEventListener("activate", (event) =>
  event.waitUntil(inTurn(tidy).then(() => worker.clients.claim())),
);
worker.addEventListener("message", (event) => {
  const { keep: page, files = [] } = event.data;
  if (page) event.waitUntil(inTurn(tidy).then(() => keep(page, files)).catch(() => undefined));
});
worker.addEventListener("fetch", (event) => {
  const { request } = event;
  const url = new URL(request.url);
  if (request.method !== "GET" || url.origin !== location.origin) return;
  if (isCard(url.pathname)) event.respondWith(card(event, url.pathname));
  else if (url.pathname.startsWith("/static/")) event.respondWith(file(request));
});

export {};
