// Receive webhooks: SERVICE_WEBHOOK_SECRET=whsec_… PORT=9000 node receiver.mjs
import { createHmac, timingSafeEqual } from "node:crypto";
import { createServer } from "node:http";

const { SERVICE_WEBHOOK_SECRET, PORT } = process.env;
const TOLERANCE_SECONDS = 300;
const BODY_MAX = 1_000_000;
const seen = new Set(); // in production: a unique column of your database

/** Checked on the raw bytes, before anything reads the JSON. */
function isGenuine(signature, rawBody) {
  const parts = signature.split(",").map((part) => part.trim().split("="));
  const t = parts.find(([name]) => name === "t")?.[1] ?? "";
  if (!/^\d+$/.test(t) || Math.abs(Date.now() / 1000 - Number(t)) > TOLERANCE_SECONDS) return false;
  const expected = createHmac("sha256", SERVICE_WEBHOOK_SECRET)
    .update(`${t}.`)
    .update(rawBody)
    .digest();
  // After a roll of the secret there are two v1 for a day: one that fits is enough.
  return parts
    .filter(([name, value]) => name === "v1" && /^[0-9a-f]{64}$/.test(value ?? ""))
    .map(([, value]) => timingSafeEqual(expected, Buffer.from(value, "hex")))
    .includes(true);
}

async function read(request) {
  const chunks = [];
  let size = 0;
  for await (const chunk of request) {
    size += chunk.length;
    if (size <= BODY_MAX) chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** Your own work. Order is not guaranteed: go by `occurredAt` and the status. */
function handle(event) {
  const about = event.data.reservation ?? event.data.venue; // the venue: of venue.updated
  console.log(event.id, event.type, about?.status);
}

createServer(async (request, response) => {
  const rawBody = await read(request).catch(() => Buffer.alloc(0));
  if (!isGenuine(request.headers["x-service-signature"] ?? "", rawBody)) {
    response.writeHead(400).end();
    return;
  }
  const delivery = request.headers["x-service-delivery"];
  const isNew = !seen.has(delivery);
  seen.add(delivery);
  response.writeHead(204).end(); // at once, for a duplicate too: the work comes afterwards
  if (isNew) setImmediate(() => handle(JSON.parse(rawBody.toString("utf8"))));
}).listen(Number(PORT), "127.0.0.1");
