// Book with the TypeScript package of the box. SERVICE_URL, SERVICE_KEY and DATE say where.

import { type components, connect } from "venuebox-client";

declare const process: { env: Record<string, string>; exitCode: number };

const { SERVICE_URL, SERVICE_KEY, DATE } = process.env as {
  [name in "SERVICE_URL" | "SERVICE_KEY" | "DATE"]: string;
};
const client = connect(SERVICE_URL, SERVICE_KEY);

// @ts-expect-error: nobody is a customer without a name
export const nobody: components["schemas"]["Customer"] = { email: "amina@example.com" };

function granted<T>({ data, error }: { data?: T; error?: unknown }): T {
  if (data === undefined) throw new Error(JSON.stringify(error));
  return data;
}

async function book(): Promise<void> {
  const venue = granted(await client.GET("/v1/venue"));
  console.log(venue.policies?.["cancellation"]);
  const slot = venue.slots[0]!.start;
  const free = granted(
    await client.GET("/v1/availability", { params: { query: { date: DATE, slot } } }),
  );
  const booked = granted(
    await client.POST("/v1/reservations", {
      body: {
        tableId: free.tables.find((table) => table.available)!.id,
        date: DATE,
        slot,
        guests: 2,
        customer: { name: "Amina Idrissi", phone: "+212 600 000 000" },
        externalRef: "venuebox-client-ts",
        idempotencyKey: "venuebox-client-ts-1",
      },
    }),
  );
  const id = booked.serviceReservationId;
  const params = { path: { id }, query: { notifyCustomer: false } };
  granted(await client.DELETE("/v1/reservations/{id}", { params }));
  granted(await client.GET("/v1/webhooks"));
}

void book();
