/**
 * Caches the door app's files for offline use. The box adds the variable `shell` at the start of
 * this script. It contains the page's address, its files and their version. Responses of the
 * terminal protocol are never cached.
 */

interface Shell {
  name: string;
  version: string;
  page: string;
  assets: string[];
}

interface Extendable extends Event {
  waitUntil(work: Promise<unknown>): void;
}

interface Fetching extends Extendable {
  request: Request;
  respondWith(answer: Response | Promise<Response>): void;
}

interface WorkerScope {
  shell: Shell;
  skipWaiting(): Promise<void>;
  clients: { claim(): Promise<void> };
  addEventListener(
    kind: "install" | "activate" | "message", listener: (event: Extendable) => void,
  ): void;
  addEventListener(kind: "fetch", listener: (event: Fetching) => void): void;
}

const worker = globalThis as unknown as WorkerScope;
const { name, version, page, assets } = worker.shell;
const cacheName = `${name}-${version}`;

/** Cache all files. Throws if one of them cannot be fetched. */
async function fetchAll(): Promise<void> {
  const cache = await caches.open(cacheName);
  await cache.addAll(assets);
  await cache.add(new Request(page, { cache: "reload" }));
}

/**
 * Cache the files again if they are missing. Unpairing deletes them. When the phone is paired
 * again, the browser does not repeat the `install` event if it still has the same service worker.
 */
async function restoreCache(): Promise<void> {
  const cache = await caches.open(cacheName);
  if (!(await cache.match(page))) await fetchAll();
}

async function activate(): Promise<void> {
  const own = (await caches.keys()).filter((key) => key.startsWith(`${name}-`));
  const old = own.filter((key) => key !== cacheName);
  await Promise.all(old.map((key) => caches.delete(key)));
  await worker.clients.claim();
}

async function cached(request: Request, key: string): Promise<Response> {
  const cache = await caches.open(cacheName);
  return (await cache.match(key)) ?? fetch(request);
}

worker.addEventListener("install", (event) =>
  event.waitUntil(fetchAll().then(() => worker.skipWaiting())),
);
worker.addEventListener("message", (event) => event.waitUntil(restoreCache()));
worker.addEventListener("activate", (event) => event.waitUntil(activate()));
worker.addEventListener("fetch", (event) => {
  const { request } = event;
  if (request.method !== "GET") return;
  const url = new URL(request.url);
  if (url.origin !== location.origin) return;
  if (url.pathname === page) return event.respondWith(cached(request, page));
  // If a page of an older version requests a file, return the newest version, as the box would.
  const asset = assets.find((path) => path.replace(/\?.*/, "") === url.pathname);
  if (asset) event.respondWith(cached(request, asset));
});

export {};
