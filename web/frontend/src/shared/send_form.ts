const DEADLINE_MS = 60_000;

/**
 * Send a form in place, so that it keeps its input if the box does not answer. Return the answer. If
 * there is none, show the form's notice `[data-unanswered]` and return null.
 */
export async function sendForm(form: HTMLFormElement): Promise<Response | null> {
  const notice = form.querySelector<HTMLElement>("[data-unanswered]");
  if (notice) notice.hidden = true;
  const texts = [...new FormData(form)].map(([name, value]) => [name, String(value)]);
  const signal = AbortSignal.timeout(DEADLINE_MS);
  const options = { method: "POST", body: new URLSearchParams(texts), signal };
  const answer = await fetch(form.action, options).catch(() => null);
  if (answer && answer.status < 500) return answer;
  if (notice) notice.hidden = false;
  return null;
}
