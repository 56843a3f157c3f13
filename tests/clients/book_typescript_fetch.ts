// Book with the typescript-fetch client of openapi-generator.

import { Configuration, ReservationsApi, VenueApi, WebhookEndpointsApi } from "./typescript-fetch";

declare const process: { env: Record<string, string> };

const { SERVICE_URL, SERVICE_KEY, DATE } = process.env as {
  [name in "SERVICE_URL" | "SERVICE_KEY" | "DATE"]: string;
};
const server = new Configuration({ basePath: SERVICE_URL, accessToken: SERVICE_KEY });

async function book(): Promise<void> {
  const [venues, reservations] = [new VenueApi(server), new ReservationsApi(server)];
  const date = new Date(DATE);
  const slot = (await venues.getVenue()).slots[0]!.start;
  const free = await venues.getAvailability({ date, slot });
  const booked = await reservations.createReservation({
    createReservation: {
      tableId: free.tables.find((table) => table.available)!.id,
      date,
      slot,
      guests: 2,
      customer: { name: "Amina Idrissi", phone: "+212 600 000 000" },
      externalRef: "typescript-fetch",
      idempotencyKey: "typescript-fetch-1",
    },
  });
  if (booked.accessLinkExpiresAt < new Date()) throw new Error("the links are over already");
  const id = booked.serviceReservationId;
  await reservations.cancelReservation({ id, notifyCustomer: false });
  await new WebhookEndpointsApi(server).listWebhooks();
}

void book();
