/**
 * Keeps the door app on the phone. The box's route puts `shell` before this script: which page,
 * which files, which version. Answers of the terminal protocol are never kept.
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
  addEventListener(kind: "install" | "activate" | "message", hear: (event: Extendable) => void): void;
  addEventListener(kind: "fetch", hear: (event: Fetching) => void): void;
}

const worker = globalThis as unknown as WorkerScope;
const { name, version, page, assets } = worker.shell;
const here = `${name}-${version}`;

/** All of it or nothing: half an app would fail at the door. */
async function fetchAll(): Promise<void> {
  const cache = await caches.open(here);
  await cache.addAll(assets);
  await cache.add(new Request(page, { cache: "reload" }));
}

/** A phone that was unpaired has nothing; when it is paired again no browser installs us anew. */
async function complete(): Promise<void> {
  const cache = await caches.open(here);
  if (!(await cache.match(page))) await fetchAll();
}

async function activate(): Promise<void> {
  const old = (await caches.keys()).filter((key) => key.startsWith(`${name}-`) && key !== here);
  await Promise.all(old.map((key) => caches.delete(key)));
  await worker.clients.claim();
}

async function kept(request: Request, key: string): Promise<Response> {
  const cache = await caches.open(here);
  return (await cache.match(key)) ?? fetch(request);
}

worker.addEventListener("install", (event) => event.waitUntil(fetchAll().then(() => worker.skipWaiting())));
worker.addEventListener("message", (event) => event.waitUntil(complete()));
worker.addEventListener("activate", (event) => event.waitUntil(activate()));
worker.addEventListener("fetch", (event) => {
  const { request } = event;
  if (request.method !== "GET") return;
  const url = new URL(request.url);
  if (url.origin !== location.origin) return;
  if (url.pathname === page) return event.respondWith(kept(request, page));
  // A page from before asks for an older version: like the box, this has only the newest.
  const asset = assets.find((one) => one.replace(/\?.*/, "") === url.pathname);
  if (asset) event.respondWith(kept(request, asset));
});

export {};
