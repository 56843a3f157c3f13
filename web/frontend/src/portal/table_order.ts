// Change the order of tables by dragging. Without a script, each row has arrow buttons.

export function dragTables(): void {
  const room = document.querySelector<HTMLElement>("[data-tables]");
  const body = room?.querySelector("tbody");
  if (!room || !body) return;
  room.classList.add("draggable");
  const rows = (): HTMLElement[] => [...body.querySelectorAll<HTMLElement>("[data-table]")];
  const order = (): string => rows().map((row) => row.dataset["table"] ?? "").join(" ");
  let row: HTMLElement | null = null;
  let before = "";

  body.addEventListener("pointerdown", (event) => {
    const handle = (event.target as Element).closest<HTMLElement>("[data-handle]");
    if (!handle || event.button !== 0) return;
    event.preventDefault();
    row = handle.closest<HTMLElement>("[data-table]");
    before = order();
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
    if (order() !== before) void send(room, order());
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

/** Save the order and reload the page, which keeps its scroll position. */
async function send(room: HTMLElement, ids: string): Promise<void> {
  const answer = await fetch(room.dataset["tables"] ?? "", {
    method: "POST",
    headers: { "HX-Request": "true" },
    body: new URLSearchParams({ ids, seen: room.dataset["seen"] ?? "" }),
  });
  if (answer.ok) {
    window.location.reload();
    return;
  }
  const problem = document.getElementById("problem");
  const said = new DOMParser().parseFromString(await answer.text(), "text/html");
  problem?.replaceChildren(...said.body.childNodes);
}
