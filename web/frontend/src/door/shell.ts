/** The app's own files on this phone: kept by the service worker, renewed when the box has newer. */

const LOOK_EVERY_MS = 3600_000;

/** Keep the app; load a newer one when `idle` says that nobody is being let in. */
export function keepShell(start: string, idle: () => boolean): void {
  if (!("serviceWorker" in navigator)) return;
  const { serviceWorker } = navigator;
  const hadOne = serviceWorker.controller !== null;
  let newer = false;
  const renew = () => {
    if (newer && idle() && document.visibilityState === "hidden") location.reload();
  };
  serviceWorker.addEventListener("controllerchange", () => {
    newer = hadOne;
    renew();
  });
  document.addEventListener("visibilitychange", renew);
  void register(start).catch(() => undefined); // without it the app works, but not after a reload
}

async function register(start: string): Promise<void> {
  const options: RegistrationOptions = { scope: start, updateViaCache: "none" };
  const registration = await navigator.serviceWorker.register(`${start}/service-worker.js`, options);
  const look = () => void registration.update().catch(() => undefined);
  setInterval(look, LOOK_EVERY_MS);
  document.addEventListener("visibilitychange", () => {
    if (document.visibilityState === "visible") look();
  });
}

/** Forget the kept files too: the phone may belong to somebody who left. */
export async function forgetShell(environment: string, start: string): Promise<void> {
  if ("caches" in globalThis) {
    const names = (await caches.keys()).filter((key) => key.startsWith(`venuebox-door-${environment}-`));
    await Promise.all(names.map((name) => caches.delete(name)));
  }
  const registration = await navigator.serviceWorker?.getRegistration(start);
  await registration?.unregister();
}
