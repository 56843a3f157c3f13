// Webhooks on this machine: node listen.mjs http://127.0.0.1:9000/ or listen.mjs trigger TYPE
import { existsSync, readFileSync, writeFileSync } from "node:fs";

const { SERVICE_URL, SERVICE_KEY } = process.env;
const [, , target, type] = process.argv;
const file = "listen.json"; // keeps the endpoint

async function call(method, url, body) {
  const headers = { Authorization: `Bearer ${SERVICE_KEY}`, "Content-Type": "application/json" };
  const answer = await fetch(url, { method, headers, body: body && JSON.stringify(body) });
  if (!answer.ok) throw new Error(await answer.text());
  return answer.json();
}

if (target === "trigger") {
  const order = { type, endpointId: JSON.parse(readFileSync(file, "utf8")).id };
  console.log(await call("POST", `${SERVICE_URL}/v1/webhooks/test`, order));
  process.exit();
}
if (!existsSync(file)) {
  const { url } = await call("POST", `${SERVICE_URL}/echo`);
  const known = await call("GET", `${SERVICE_URL}/v1/webhooks`);
  const events = [...known.events, ...known.optionalEvents];
  const endpoint = await call("POST", `${SERVICE_URL}/v1/webhooks`, { url, events });
  writeFileSync(file, JSON.stringify({ ...endpoint, last: 0 }));
}
const state = JSON.parse(readFileSync(file, "utf8"));
console.log(`export SERVICE_WEBHOOK_SECRET=${state.secret}`);
for (;;) {
  const { items } = await call("GET", `${state.url}?after=${state.last}`);
  for (const { event, headers, body, number } of items.reverse()) {
    const kept = headers.filter(([name]) => /^(X-|Content-T)/.test(name));
    const done = await fetch(target, { method: "POST", headers: kept, body }).catch((error) => error);
    console.log(event, done.status ?? done.message);
    writeFileSync(file, JSON.stringify(Object.assign(state, { last: number })));
  }
  await new Promise((resolve) => setTimeout(resolve, 1000));
}
