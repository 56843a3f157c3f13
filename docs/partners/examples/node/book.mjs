// Book a table: SERVICE_URL=… SERVICE_KEY=… node book.mjs DATE SLOT GUESTS NAME PHONE REFERENCE
import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";

const { SERVICE_URL, SERVICE_KEY } = process.env;
const sleep = (seconds) => new Promise((done) => setTimeout(done, seconds * 1000));

/** { status, answer, headers }. Repeats after 429, 503 and network errors, and never a 409. */
async function call(method, path, body, tries = 5) {
  for (let made = 1; ; made += 1) {
    let wait = 2 ** (made - 1);
    try {
      const response = await fetch(SERVICE_URL + path, {
        method,
        headers: { Authorization: `Bearer ${SERVICE_KEY}`, "Content-Type": "application/json" },
        body,
        signal: AbortSignal.timeout(15_000),
      });
      const answer = await response.json();
      if (![429, 503].includes(response.status) || made === tries) {
        return { status: response.status, answer, headers: response.headers };
      }
      wait = Number(response.headers.get("Retry-After") ?? 1);
    } catch (error) {
      // No connection, it broke, or it was not the box that answered: the booking may exist or
      // not. The same key finds out.
      if (made === tries) throw error;
    }
    await sleep(wait);
  }
}

function giveUp(message) {
  console.error(message);
  process.exit(1);
}

/** Ids of free tables for that party, the smallest first. */
async function tablesThatFit(date, slot, guests) {
  const venue = (await call("GET", "/v1/venue")).answer;
  const query = new URLSearchParams({ date, slot });
  const { status, answer } = await call("GET", `/v1/availability?${query}`);
  if (status !== 200) giveUp(`${answer.code}: ${answer.error_en}`);
  const free = new Set(answer.tables.filter((table) => table.available).map((table) => table.id));
  return venue.tables
    .filter((table) => free.has(table.id))
    .filter((table) => table.capacityMin <= guests && guests <= table.capacityMax)
    .sort((one, other) => one.capacityMax - other.capacityMax)
    .map((table) => table.id);
}

/** Whole or not at all, before it is sent. */
function store(stored, request) {
  writeFileSync(`${stored}.part`, JSON.stringify(request));
  renameSync(`${stored}.part`, stored);
}

/** The creation result of the stored request, or null when its table is taken. */
async function ask(stored) {
  const { status, answer, headers } = await call("POST", "/v1/reservations", readFileSync(stored));
  if (["cancelled", "declined"].includes(headers.get("Reservation-Status"))) {
    rmSync(stored);
    giveUp("this booking was cancelled since: use a new reference");
  }
  // 200: it was booked before, here is that result.
  if (status === 201 || status === 200) return answer;
  // Nothing was booked; any other refusal leaves that open.
  if ([400, 409].includes(status) || answer.code === "TABLE_NOT_FOUND") rmSync(stored);
  if (answer.code !== "TABLE_TAKEN") giveUp(`${answer.code}: ${answer.error_en}`);
  return null;
}

/** The creation result. `reference` is your own number of this booking. */
async function book(date, slot, guests, name, phone, reference) {
  // In production: a column of your own booking.
  const stored = `${encodeURIComponent(reference)}.json`;
  // Started again: it may be booked or not.
  let answer = existsSync(stored) ? await ask(stored) : null;
  if (answer) return answer;
  for (const tableId of await tablesThatFit(date, slot, guests)) {
    store(stored, {
      tableId,
      date,
      slot,
      guests,
      customer: { name, phone },
      externalRef: reference,
      idempotencyKey: reference,
      notifyCustomer: false,
    });
    answer = await ask(stored);
    if (answer) return answer;
  }
  return giveUp(`no table for ${guests} on ${date} at ${slot}`);
}

const [date, slot, guests, name, phone, reference] = process.argv.slice(2);
console.log(JSON.stringify(await book(date, slot, Number(guests), name, phone, reference)));
