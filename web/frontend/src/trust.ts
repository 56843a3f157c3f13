/**
 * Check whether this browser allows the camera and offline pages, and whether it trusts the
 * certificate authority of the box. Open the steps for this device.
 */

const main = document.querySelector<HTMLElement>("main.trust")!;
const secure = main.dataset["secure"] ?? "";

function showCheck(name: string, holds: boolean): void {
  const line = main.querySelector<HTMLElement>(`[data-check="${name}"]`)!;
  line.dataset["holds"] = holds ? "yes" : "no";
  line.querySelector(".mark")!.textContent = holds ? "✓" : "✗";
  line.querySelector<HTMLElement>("[data-wait]")!.hidden = true;
  line.querySelector<HTMLElement>("[data-yes]")!.hidden = !holds;
  line.querySelector<HTMLElement>("[data-no]")!.hidden = holds;
}

function show(state: string): void {
  for (const part of main.querySelectorAll<HTMLElement>("[data-state]")) {
    part.hidden = part.dataset["state"] !== state;
  }
}

/** Whether the browser trusts the box's certificate, i.e. an https request to it succeeds. */
async function isTrusted(): Promise<boolean> {
  if (!secure) return false;
  try {
    await fetch(`${secure}/trust/check`, { mode: "no-cors", cache: "no-store" });
    return true;
  } catch {
    return false;
  }
}

async function check(): Promise<void> {
  const checks = {
    secure: isSecureContext,
    camera: isSecureContext && "mediaDevices" in navigator,
    offline: isSecureContext && "serviceWorker" in navigator,
  };
  for (const [name, holds] of Object.entries(checks)) showCheck(name, holds);
  if (Object.values(checks).every(Boolean)) return show("done");
  show((await isTrusted()) ? "trusted" : "untrusted");
}

/** Open the first steps whose `data-agent` occurs in the browser's User-Agent. */
function openSteps(): void {
  const steps = [...main.querySelectorAll("details")];
  const own = steps.find((each) => navigator.userAgent.match(each.dataset["agent"]!));
  if (own) own.open = true;
}

openSteps();
main.querySelector("[data-again]")?.addEventListener("click", () => void check());
void check();

export {};
