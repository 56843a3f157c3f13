/** Says whether camera and offline page will work here, and finds out when the box is trusted. */

const main = document.querySelector<HTMLElement>("main.trust")!;
const secure = main.dataset["secure"] ?? "";

function tell(name: string, holds: boolean): void {
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

/** A browser only talks to the box over https when it trusts the certificate. */
async function trusts(): Promise<boolean> {
  if (!secure) return false;
  try {
    await fetch(`${secure}/trust/check`, { mode: "no-cors", cache: "no-store" });
    return true;
  } catch {
    return false;
  }
}

async function look(): Promise<void> {
  const checks = {
    secure: isSecureContext,
    camera: isSecureContext && "mediaDevices" in navigator,
    offline: isSecureContext && "serviceWorker" in navigator,
  };
  for (const [name, holds] of Object.entries(checks)) tell(name, holds);
  if (Object.values(checks).every(Boolean)) return show("done");
  show((await trusts()) ? "trusted" : "todo");
}

main.querySelector("[data-again]")?.addEventListener("click", () => void look());
void look();

export {};
