// Change the order of tables by dragging. Without a script, each row has arrow buttons.

import { showUnreachable } from "./forms";
import { ask } from "./waiting";

export function dragTables(root: ParentNode): void {
  const room = root.querySelector<HTMLElement>("[data-tables]");
  const body = room?.querySelector("tbody");
  if (!room || !body) return;
  room.classList.add("draggable");
  const rows = (): HTMLElement[] => [...body.querySelectorAll<HTMLElement>("[data-table]")];
  let row: HTMLElement | null = null;
  let before: HTMLElement[] = [];

  body.addEventListener("pointerdown", (event) => {
    const handle = (event.target as Element).closest<HTMLElement>("[data-handle]");
    if (!handle || event.button !== 0) return;
    event.preventDefault();
    row = handle.closest<HTMLElement>("[data-table]");
    before = rows();
    row?.classList.add("dragged");
    handle.setPointerCapture(event.pointerId);
  });
  body.addEventListener("pointermove", (event) => {
    if (!row) return;
    const others = rows().filter((other) => other !== row);
    const next = others.find((other) => event.clientY < middle(other)) ?? null;
    if (next !== row.nextElementSibling) body.insertBefore(row, next);
  });
  // Taps and scrolling fire pointerup too. Without a dragged row, there is nothing to do.
  body.addEventListener("pointerup", () => {
    if (!row) return;
    row.classList.remove("dragged");
    row = null;
    const [now, old] = [rows(), before];
    if (now.some((each, n) => each !== old[n])) void send(room, now, () => body.append(...old));
  });
  body.addEventListener("pointercancel", () => {
    if (!row) return;
    row.classList.remove("dragged");
    row = null;
    window.location.reload();
  });
}

function middle(row: HTMLElement): number {
  const box = row.getBoundingClientRect();
  return box.top + box.height / 2;
}

/**
 * Save the order and reload the page, which keeps its scroll position. If the order was not saved,
 * put the rows back and say why.
 */
async function send(
  room: HTMLElement, rows: readonly HTMLElement[], putBack: () => void,
): Promise<void> {
  const ids = rows.map((row) => row.dataset["table"] ?? "").join(" ");
  const answer = await ask(room.dataset["tables"] ?? "", {
    method: "POST",
    headers: { "HX-Request": "true" },
    body: new URLSearchParams({ ids, seen: room.dataset["seen"] ?? "" }),
  }).catch(() => null);
  if (answer?.ok) return window.location.reload();
  putBack();
  const text = await answer?.text().catch(() => null);
  if (!answer || answer.status >= 500 || typeof text !== "string") return showUnreachable();
  const said = new DOMParser().parseFromString(text, "text/html");
  document.getElementById("problem")?.replaceChildren(...said.body.childNodes);
}
