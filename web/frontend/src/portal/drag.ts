// Drag a chip of the board to a free cell. At the same time, the party moves at once; at another
// time, the form for changes opens, because the guest may have to hear of it.

import { act, openReservation } from "./drawer";

const CHIP = "a.guest:not([draggable=false])";

export function followDrag(): void {
  let dragged: HTMLAnchorElement | null = null;
  document.addEventListener("dragstart", (event) => {
    dragged = (event.target as Element).closest<HTMLAnchorElement>(CHIP);
  });
  document.addEventListener("dragend", () => {
    dragged = null;
    mark(null);
  });
  document.addEventListener("dragover", (event) => {
    const free = dragged ? freeAt(event) : null;
    mark(free);
    if (free) event.preventDefault();
  });
  document.addEventListener("drop", (event) => {
    const free = freeAt(event);
    if (!dragged || !free) return;
    event.preventDefault();
    drop(dragged, free);
  });
}

function freeAt(event: DragEvent): HTMLAnchorElement | null {
  return (event.target as Element).closest("td")?.querySelector<HTMLAnchorElement>("a.free") ?? null;
}

function mark(free: Element | null): void {
  for (const other of document.querySelectorAll(".drop")) other.classList.remove("drop");
  free?.classList.add("drop");
}

function drop(chip: HTMLAnchorElement, free: HTMLAnchorElement): void {
  const id = chip.dataset["reservation"] ?? "";
  const place = new URL(free.href).searchParams;
  const isSameTime = chip.closest("td")?.cellIndex === free.closest("td")?.cellIndex;
  if (isSameTime) {
    void act(id, `${chip.pathname}/move`, { seen: chip.dataset["version"], table: place.get("table") });
    return;
  }
  const address = new URL(chip.href);
  for (const name of ["date", "slot", "table"]) {
    const value = place.get(name);
    if (value) address.searchParams.set(name, value);
  }
  void openReservation(id, address.href);
}
