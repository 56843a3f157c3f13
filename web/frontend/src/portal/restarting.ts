// The page that is shown while the box begins anew goes on by itself, once the settings that were
// saved are in force. Without a script its link does the same.

const PATIENCE_MS = 1000;

export function goOnAfterRestart(): void {
  const way = document.querySelector<HTMLAnchorElement>("a[data-goes-on]");
  if (way) window.setTimeout(() => void goOn(way), PATIENCE_MS);
}

async function goOn(way: HTMLAnchorElement): Promise<void> {
  if (await hasBegunAnew(way.pathname)) window.location.replace(way.href);
  else window.setTimeout(() => void goOn(way), PATIENCE_MS);
}

/** While the old settings are still in force, the room offers to restart. */
async function hasBegunAnew(room: string): Promise<boolean> {
  try {
    const answer = await fetch(room, { cache: "no-store" });
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    return answer.ok && page.querySelector("form[action$='/box/restart']") === null;
  } catch {
    return false;
  }
}
