// What is pressed while the box is out of reach says so, where the person is looking.

export function sayWhenUnreachable(): void {
  document.addEventListener("htmx:error", (event) => {
    // Of a request that nothing came back from; a refusal has words of its own.
    const { ctx } = (event as CustomEvent<{ ctx?: { text?: string } }>).detail;
    if (ctx && ctx.text === undefined) sayUnreachable();
  });
  document.addEventListener("htmx:after:request", isReached);
}

export function sayUnreachable(): void {
  isReached();
  const place = document.querySelector<HTMLElement>("#problem");
  if (!place) return;
  const said = document.createElement("p");
  said.className = "problem";
  said.textContent = place.dataset["unreachable"] ?? "";
  said.dataset["outOfReach"] = "";
  // An open drawer may cover the page.
  const head = document.querySelector("#drawer .detail-head");
  if (head) said.setAttribute("role", "alert");
  if (head) head.after(said);
  else place.append(said);
  said.scrollIntoView({ block: "nearest" });
}

/** It answers again. */
export function isReached(): void {
  for (const said of document.querySelectorAll("[data-out-of-reach]")) said.remove();
}
