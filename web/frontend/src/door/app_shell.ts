/** Install the app's files for offline use with the service worker, and update them. */

const LOOK_EVERY_MS = 3600_000;

let isWatched = false;
let registration: ServiceWorkerRegistration | null = null;

/**
 * Install the app's files. Once a newer version is installed, reload the page when it is hidden and
 * `idle` returns true.
 */
export async function installAppShell(start: string, idle: () => boolean): Promise<void> {
  if (!("serviceWorker" in navigator)) return;
  const { serviceWorker } = navigator;
  if (!isWatched) watch(idle);
  isWatched = true;
  const options: RegistrationOptions = { scope: start, updateViaCache: "none" };
  // Without a service worker the app works, but cannot be reloaded offline.
  const script = `${start}/service-worker.js`;
  registration = await serviceWorker.register(script, options).catch(() => null);
  registration?.active?.postMessage("complete");
}

function watch(idle: () => boolean): void {
  const { serviceWorker } = navigator;
  let hadOne = serviceWorker.controller !== null;
  let newer = false;
  const renew = () => {
    if (newer && idle() && document.visibilityState === "hidden") location.reload();
  };
  serviceWorker.addEventListener("controllerchange", () => {
    newer = hadOne;
    hadOne = true;
    renew();
  });
  const look = () => void registration?.update().catch(() => undefined);
  setInterval(look, LOOK_EVERY_MS);
  document.addEventListener("visibilitychange", () => {
    if (document.visibilityState === "visible") look();
    else renew();
  });
}

/** Delete the installed files and unregister the service worker. */
export async function removeAppShell(environment: string, start: string): Promise<void> {
  if ("caches" in globalThis) {
    const prefix = `venuebox-door-${environment}-`;
    const names = (await caches.keys()).filter((key) => key.startsWith(prefix));
    await Promise.all(names.map((name) => caches.delete(name)));
  }
  registration = null;
  const kept = await navigator.serviceWorker?.getRegistration(start);
  await kept?.unregister();
}
