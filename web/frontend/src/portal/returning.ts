/**
 * Whoever goes back to a form that was sent would send it with the same token once more, and what
 * they typed into it now would be taken for what it did then: such a page is opened anew. One
 * whose form was not sent stays as it was left.
 */
export function openSentFormsAnew(): void {
  let wasSent = false;
  document.addEventListener("submit", ({ target, submitter, defaultPrevented }) => {
    const isOnce = target instanceof HTMLFormElement && target.querySelector("[name=token], [name=once]");
    const onlyAsks = submitter instanceof HTMLButtonElement && submitter.name === "offer";
    if (isOnce && !onlyAsks && !defaultPrevented) wasSent = true;
  });
  addEventListener("pageshow", ({ persisted }) => {
    if (persisted && wasSent) location.replace(location.href);
  });
}
