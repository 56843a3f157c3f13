/**
 * The sandbox page. It creates an echo receiver with a test key, registers it, and shows its
 * deliveries. The key is kept in memory only. The receiver's token is in the URL fragment. After a
 * reload, or on another computer with the same link, the deliveries are shown without the key.
 */

interface Signature {
  verdict: string;
  t: number | null;
  ageSeconds: number | null;
  expected: string[];
  given: string[];
}

interface Echo {
  number: number;
  receivedAt: string;
  event: string;
  delivery: string;
  attempt: number | null;
  headers: [string, string][];
  body: string;
  signature: Signature;
  answer: { mode: string; status: number };
}

interface Endpoint {
  id: string;
  url: string;
  active: boolean;
  createdByThisKey?: boolean;
}

interface EndpointList {
  items: Endpoint[];
  events: string[];
  optionalEvents: string[];
}

interface ReceiverStatus {
  url: string;
  endpoints: { id: string; events: string[] }[];
  mode: string;
  received: number;
  items: Echo[];
}

const POLL_MS = 1000;
const TYPES_SHOWN = 6;
const MAX_SHOWN = 50;

let key = "";
let token = "";
let latest = 0;
let endpointId = "";

function find<T extends HTMLElement>(id: string): T {
  const found = document.getElementById(id);
  if (!found) throw new Error(`#${id} is missing`);
  return found as T;
}

function make(tag: string, text = "", name = ""): HTMLElement {
  const made = document.createElement(tag);
  made.textContent = text;
  if (name) made.className = name;
  return made;
}

function showProblem(sentence: string): void {
  const problem = find("problem");
  problem.textContent = sentence;
  problem.hidden = sentence === "";
}

/** Call the box. Throws an Error with the box's message if it refuses. */
async function call<T>(method: string, path: string, body?: unknown): Promise<T> {
  const headers: Record<string, string> = { Accept: "application/json" };
  if (key) headers["Authorization"] = `Bearer ${key}`;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const init: RequestInit = { method, headers, cache: "no-store" };
  if (body !== undefined) init.body = JSON.stringify(body);
  const response = await fetch(path, init);
  const answer = await response.json();
  if (!response.ok) throw new Error(`${answer.error_en} (${answer.code})`);
  return answer as T;
}

async function run(work: () => Promise<void>): Promise<void> {
  try {
    await work();
    showProblem("");
  } catch (error) {
    const isNetwork = error instanceof TypeError;
    showProblem(isNetwork ? "The box cannot be reached." : (error as Error).message);
  }
}

/** List the active endpoints. Those that this key created have a button to deactivate them.
 *  Return all types of events. */
async function listEndpoints(): Promise<string[]> {
  const listed = await call<EndpointList>("GET", "/test/v1/webhooks");
  const rows = listed.items
    .filter((endpoint) => endpoint.active)
    .map(({ id, url, createdByThisKey }) => {
      const item = make("li");
      item.append(make("code", url), " ");
      if (createdByThisKey === false) item.append(make("span", "of another key", "quiet"));
      else item.append(deactivate(id, url));
      return item;
    });
  find("endpoint-list").replaceChildren(...rows);
  find("endpoints").hidden = rows.length === 0;
  return [...listed.events, ...listed.optionalEvents];
}

function deactivate(id: string, url: string): HTMLElement {
  const button = make("button", "Deactivate", "button quiet-button small-button") as HTMLButtonElement;
  button.type = "button";
  button.setAttribute("aria-label", `Deactivate ${url}`);
  button.addEventListener("click", () =>
    void run(async () => {
      await call("DELETE", `/test/v1/webhooks/${id}`);
      await listEndpoints();
    }),
  );
  return button;
}

async function createReceiver(): Promise<void> {
  const events = await listEndpoints();
  const lent = await call<{ url: string; token: string }>("POST", "/test/echo");
  const endpoint = await call<{ id: string; secret: string }>("POST", "/test/v1/webhooks", {
    url: lent.url,
    events,
  });
  find("secret").textContent = endpoint.secret;
  find("secret-row").hidden = false;
  history.replaceState(null, "", `#${lent.token}`);
  await listEndpoints();
  watch(lent.token);
}

function watch(found: string): void {
  [token, latest] = [found, 0];
  find("borrow").hidden = true;
  find("receiver").hidden = false;
  find("arrived").hidden = false;
  find("with-key").hidden = key === "";
  find("deliveries").replaceChildren();
  void poll(true);
}

/** Fetch new deliveries every second while the page is visible. */
async function poll(first = false): Promise<void> {
  const watched = token;
  const live = find("live");
  if (first || !document.hidden) {
    try {
      const status = await call<ReceiverStatus>("GET", `/test/echo/${token}?after=${latest}`);
      if (status.received < latest) latest = 0; // the box was restarted and counts from 0 again
      else show(status, first);
      live.textContent = "watching";
      live.classList.remove("away");
    } catch (error) {
      if (first && !(error instanceof TypeError)) return showUnknownReceiver();
      live.textContent = "the box does not answer, retrying";
      live.classList.add("away");
    }
  }
  if (watched === token) setTimeout(poll, POLL_MS);
}

/** Show that the token in the link is unknown to this box. */
function showUnknownReceiver(): void {
  token = "";
  history.replaceState(null, "", location.pathname);
  find("borrow").hidden = false;
  find("receiver").hidden = true;
  find("arrived").hidden = true;
  showProblem("This box does not know that receiver. Create a new one.");
}

function show(status: ReceiverStatus, first: boolean): void {
  find("url").textContent = status.url;
  endpointId = status.endpoints[0]?.id ?? "";
  const types = status.endpoints[0]?.events ?? [];
  const named = types.length > TYPES_SHOWN ? `${types.length} types of events` : types.join(", ");
  find("endpoint").textContent = endpointId
    ? `active, receives ${named}`
    : "not registered: POST this URL to /test/v1/webhooks";
  find<HTMLButtonElement>("send").disabled = endpointId === "";
  if (first) showMode(status.mode);
  const list = find("deliveries");
  for (const echo of [...status.items].reverse()) list.prepend(row(echo));
  while (list.childElementCount > MAX_SHOWN) list.lastElementChild?.remove();
  latest = Math.max(latest, status.received);
  find("nothing").hidden = list.childElementCount > 0;
}

function row(echo: Echo): HTMLElement {
  const { signature } = echo;
  const isValid = signature.verdict === "valid";
  const mark = isValid ? "✓" : "✗";
  const details = make("details");
  const summary = make("summary");
  summary.append(
    make("span", echo.receivedAt.slice(11, 19)),
    make("strong", echo.event || "not an event"),
    make("span", `${mark} signature ${signature.verdict}`, isValid ? "chip good" : "chip bad"),
    make("span", echo.attempt ? `attempt ${echo.attempt}` : "not from this box", "quiet"),
    make("span", `answered ${answerOf(echo)}`, "quiet"),
  );
  const opened = make("div", "", "opened");
  opened.append(make("h3", "Signature, step by step"), steps(signature));
  const headers = echo.headers.map((pair) => pair.join(": "));
  opened.append(make("h3", "Headers"), block(headers.join("\n")));
  opened.append(make("h3", "Raw body"), block(echo.body));
  details.append(summary, opened);
  const item = make("li");
  item.append(details);
  return item;
}

function answerOf({ answer }: Echo): string {
  return answer.mode === "slow" ? `${answer.status}, slowly` : String(answer.status);
}

function steps(signature: Signature): HTMLElement {
  const list = make("ol", "", "steps");
  const add = (text: string, value = "") => {
    const step = make("li", text);
    if (value) step.append(" ", make("code", value));
    list.append(step);
  };
  if (signature.t === null) {
    add("X-Service-Signature has no t: nothing can be checked.");
    return list;
  }
  add("t from X-Service-Signature:", String(signature.t));
  add(
    `The difference to this clock is ${signature.ageSeconds} s: ` +
      (Math.abs(signature.ageSeconds ?? 0) <= 300 ? "within 300." : "more than 300, refuse it."),
  );
  add("Signed text: t, a full stop, the raw body:", `${signature.t}.{"id":…}`);
  if (signature.expected.length === 0) add("No active endpoint sends here, so there is no secret.");
  for (const value of signature.expected) add("HMAC-SHA256 with the endpoint's secret:", value);
  for (const value of signature.given) add("v1 that was sent:", value);
  add(signature.verdict === "valid" ? "They are equal: genuine." : "They differ: refuse it.");
  return list;
}

function block(text: string): HTMLElement {
  const pre = make("pre", text);
  pre.tabIndex = 0;
  return pre;
}

function showMode(mode: string): void {
  for (const radio of find("switch").querySelectorAll<HTMLInputElement>("input[type=radio]")) {
    radio.checked = radio.value === mode;
  }
}

async function setMode(): Promise<void> {
  const chosen = new FormData(find<HTMLFormElement>("switch"));
  await call("PUT", `/test/echo/${token}`, { mode: chosen.get("mode") });
}

async function send(): Promise<void> {
  await call("POST", "/test/v1/webhooks/test", { endpointId });
  find("sent").textContent = "queued";
  setTimeout(() => (find("sent").textContent = ""), 2000);
}

find<HTMLFormElement>("borrow").addEventListener("submit", (event) => {
  event.preventDefault();
  key = find<HTMLInputElement>("key").value.trim();
  void run(createReceiver);
});
find("switch").addEventListener("submit", (event) => event.preventDefault());
find("switch").addEventListener("change", () => void run(setMode));
find("send").addEventListener("click", () => void run(send));
for (const button of document.querySelectorAll<HTMLButtonElement>("[data-copies]")) {
  button.hidden = !navigator.clipboard;
  button.addEventListener("click", () =>
    void navigator.clipboard.writeText(find(button.dataset["copies"] ?? "").textContent ?? ""),
  );
}

const linked = location.hash.slice(1);
if (linked) watch(linked);
else find("borrow").hidden = false;

export {};
