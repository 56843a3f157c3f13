/** The app's own files on this phone: kept by the service worker, renewed when the box has newer. */

const LOOK_EVERY_MS = 3600_000;

let isWatched = false;
let registration: ServiceWorkerRegistration | null = null;

/** Keep the app, each time that this phone is paired; load a newer one when `idle` says so. */
export async function keepShell(start: string, idle: () => boolean): Promise<void> {
  if (!("serviceWorker" in navigator)) return;
  const { serviceWorker } = navigator;
  if (!isWatched) watch(idle);
  isWatched = true;
  const options: RegistrationOptions = { scope: start, updateViaCache: "none" };
  // Without it the app works, but not after a reload.
  registration = await serviceWorker.register(`${start}/service-worker.js`, options).catch(() => null);
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

/** Forget the kept files too: the phone may belong to somebody who left. */
export async function forgetShell(environment: string, start: string): Promise<void> {
  if ("caches" in globalThis) {
    const names = (await caches.keys()).filter((key) => key.startsWith(`venuebox-door-${environment}-`));
    await Promise.all(names.map((name) => caches.delete(name)));
  }
  registration = null;
  const kept = await navigator.serviceWorker?.getRegistration(start);
  await kept?.unregister();
}
