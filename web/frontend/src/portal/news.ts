// What just happened this evening: a line for each cancellation, which goes after ten minutes, the
// number of open requests in the title and in the navigation, and a quiet sound for news.

const SILENT = "portal silent";
let known: ReadonlySet<string> | undefined;

export function followNews(): void {
  const button = document.querySelector<HTMLElement>("[data-sound]");
  if (!button) return;
  const show = (): void => button.setAttribute("aria-pressed", String(!isSilent()));
  button.hidden = false;
  button.addEventListener("click", () => {
    localStorage.setItem(SILENT, isSilent() ? "" : "yes");
    show();
    if (!isSilent()) chime();
  });
  show();
  showNews();
}

/** Call this after the board was read again. */
export function showNews(): void {
  const requests = Number(document.getElementById("waiting")?.dataset["requests"] ?? 0);
  const title = document.title.replace(/^\(\d+\) /, "");
  document.title = requests > 0 ? `(${requests}) ${title}` : title;
  for (const badge of document.querySelectorAll<HTMLElement>("[data-badge]")) {
    badge.hidden = requests === 0;
    badge.textContent = requests === 0 ? "" : String(requests);
  }
  const lines = [...document.querySelectorAll<HTMLElement>("[data-news]")];
  for (const line of lines) setTimeout(() => line.remove(), Number(line.dataset["for"]));
  const asked = document.querySelectorAll<HTMLElement>("#waiting .requested");
  const now = new Set([
    ...lines.map((line) => line.dataset["news"] ?? ""),
    ...[...asked].map((chip) => chip.dataset["reservation"] ?? ""),
  ]);
  const isNew = known !== undefined && [...now].some((each) => !known?.has(each));
  known = new Set([...(known ?? []), ...now]);
  if (isNew && !isSilent()) chime();
}

function isSilent(): boolean {
  return localStorage.getItem(SILENT) === "yes";
}

/** Two soft notes. A browser that has not been touched yet plays nothing. */
function chime(): void {
  const context = new AudioContext();
  const volume = context.createGain();
  volume.gain.value = 0.04;
  volume.connect(context.destination);
  for (const [n, pitch] of [660, 880].entries()) {
    const note = context.createOscillator();
    note.frequency.value = pitch;
    note.connect(volume);
    note.start(context.currentTime + n * 0.15);
    note.stop(context.currentTime + n * 0.15 + 0.12);
  }
  setTimeout(() => void context.close(), 1000);
}
