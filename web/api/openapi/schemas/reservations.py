"""Reservations: listed, wished for, granted, cancelled (interface, sections 2.5 to 2.7)."""

from appliance.model import booking
from appliance.model.reservation import SOURCES, STATUSES
from web.api.openapi import samples
from web.api.openapi.schemas.parts import (
    Schema,
    access_code,
    answer_object,
    boolean,
    integer,
    list_of,
    nullable,
    ref,
    request_object,
    slot_time,
    text,
    timestamp,
    uuid,
    venue_date,
)

_NOT_BLANK = r"\S"


def reservation_schemas() -> dict[str, Schema]:
    """Component schemas by name."""
    return {
        "ReservationStatus": _status(),
        "ReservationSource": _source(),
        "TableName": _table_name(),
        "Reservation": _reservation(),
        "ReservationPage": _page(),
        "CreateReservation": _create(),
        "Customer": _customer(),
        "CreationResult": _creation(),
        "Notifications": _notifications(),
        "Cancellation": _cancellation(),
    }


def _status() -> Schema:
    return text(
        "`confirmed`, `completed`, `requested`, `pending` and `partial` hold the table; "
        "`cancelled` and `declined` free it.",
        enum=list(STATUSES),
    )


def _source() -> Schema:
    return text(
        "Where it was made: on the `platform`, by the venue's staff (`manual`) or through this "
        "interface (`partner`).",
        enum=list(SOURCES),
    )


def _table_name() -> Schema:
    return answer_object(
        {"id": uuid("The table."), "name": text("Its display name.")},
        description="The table that is held.",
    )


def _reservation() -> Schema:
    contact = "Present only while the venue's `reservationMode` is `free`."
    return answer_object(
        {
            "id": uuid("Identifier: the `serviceReservationId` of your own reservations."),
            "accessCode": nullable(
                access_code(
                    "The code that the guest may say at the door. Null once it was freed, "
                    "30 days after the evening."
                )
            ),
            "status": ref("ReservationStatus"),
            "date": venue_date("The evening, in venue time."),
            "slot": nullable(slot_time("Start of the slot, in venue time; null: whole evening.")),
            "table": ref("TableName"),
            "guests": integer("Size of the party.", minimum=1),
            "customerFirstName": nullable(
                text("First word of the customer's name; null once it was erased.")
            ),
            "source": ref("ReservationSource"),
            "checkedInAt": nullable(
                timestamp("When the guest passed the entry terminal; null until then.")
            ),
            "createdAt": timestamp("When the reservation was made."),
            "externalRef": text(
                "Your own identifier. Present only on reservations that your key created with one.",
                minLength=1,
                maxLength=booking.REFERENCE_MAX,
            ),
            "customerEmail": nullable(text(f"{contact} Null when none was given.")),
            "customerPhone": nullable(text(f"{contact} Null when none was given.")),
        },
        optional=("externalRef", "customerEmail", "customerPhone"),
        description="A reservation from any source.",
        examples=[samples.OWN_RESERVATION, samples.PREPAID_RESERVATION],
    )


def _page() -> Schema:
    return answer_object(
        {
            "items": list_of(
                ref("Reservation"),
                "In the order of date, slot (whole evenings first), `createdAt`, `id`.",
                maxItems=200,
            ),
            "page": integer("The page that was asked for.", minimum=1),
            "limit": integer("The page size that was asked for.", minimum=1, maximum=200),
            "total": integer("Reservations that match, on all pages.", minimum=0),
            "contactDetailsIncluded": boolean(
                "Whether items carry `customerEmail` and `customerPhone`: true while the venue's "
                "`reservationMode` is `free`."
            ),
        },
        description="A page of the venue's reservations.",
    )


def _customer() -> Schema:
    return request_object(
        {
            "name": text(
                "Full name; the first word is shown at the door.",
                minLength=1,
                maxLength=booking.NAME_MAX,
                pattern=_NOT_BLANK,
            ),
            "email": nullable(text("Where the confirmation is sent.", maxLength=booking.EMAIL_MAX)),
            "phone": nullable(
                text(
                    "6 to 20 digits, 40 characters at most; spaces are welcome.",
                    pattern="^(([^0-9]*[0-9]){6,20}[^0-9]*)?$",
                    maxLength=booking.PHONE_MAX,
                )
            ),
            "language": nullable(
                text(
                    "Of the emails and of the pages that the links open: `fr`, `en` or `ar`. When "
                    "it is left out, emails are French and pages follow the customer's browser.",
                    pattern="^(fr|en|ar)$",
                    examples=["en"],
                )
            ),
        },
        required=("name",),
        # In words: generators make a class without a name of each way to say it in the schema.
        description="Who the table is for: a name, and an email, a phone number or both; with "
        "neither, 400 `CUSTOMER_CONTACT_REQUIRED`. Null counts as absent, and so does an empty "
        "email or phone number.",
    )


def _create() -> Schema:
    return request_object(
        {
            "tableId": uuid("A `bookable` table of `GET /v1/venue`."),
            "date": venue_date(
                "The evening, in venue time: from tonight to 730 days ahead. After midnight and "
                "until the evening ends, tonight is still yesterday's date."
            ),
            "slot": nullable(
                slot_time(
                    "`start` of a slot offered on that weekday. Without it, the table is held for "
                    "the whole evening."
                )
            ),
            "guests": integer(
                "Size of the party, within the table's `capacityMin` to `capacityMax`. Written "
                "without a decimal point: `4`, never `4.0`.",
                minimum=1,
            ),
            "customer": ref("Customer"),
            "notes": nullable(text("For the venue's staff.", maxLength=booking.NOTES_MAX)),
            "externalRef": nullable(
                text(
                    "Your own identifier of the reservation, shown to your key in the list and in "
                    "events.",
                    maxLength=booking.REFERENCE_MAX,
                )
            ),
            "idempotencyKey": text(
                "Chosen by you, once for each reservation you mean to make: repeating a request "
                "with the same key never makes a second one.",
                minLength=1,
                maxLength=booking.REFERENCE_MAX,
                pattern=_NOT_BLANK,
            ),
            # In words: of `default` openapi-typescript makes a member that must be there.
            "notifyCustomer": boolean(
                "True when it is left out. When false, no email is sent: present `guestAccessUrl` "
                "to the customer yourself."
            ),
        },
        required=("tableId", "date", "guests", "customer", "idempotencyKey"),
        description="A table, an evening, a party and a customer. Unknown members are ignored.",
    )


def _notifications() -> Schema:
    return answer_object(
        {
            "email": text(
                "`sent`: the mail server accepted it within 5 seconds. `failed`: it did not; the "
                "box tries again in the background. `skipped`: told not to, or no address given.",
                enum=["sent", "failed", "skipped"],
            ),
            "sms": text("Not offered yet: always `skipped`.", const="skipped"),
        },
        description="What the customer was sent.",
    )


def _creation() -> Schema:
    return answer_object(
        {
            "serviceReservationId": uuid("Identifier to cancel with."),
            "accessCode": access_code("The code that the guest may say at the door."),
            "status": text("Always confirmed at once.", const="confirmed"),
            "guestAccessUrl": text(
                "Page with the customer's personal QR code. Treat it as a secret of the customer.",
                format="uri",
            ),
            "claimUrl": text("Page on which the customer claims the reservation.", format="uri"),
            "accessLinkExpiresAt": timestamp(
                "When both links stop working: 12:00 venue time on the day after the evening."
            ),
            "notifications": ref("Notifications"),
        },
        description="What was granted. A replay returns the same values.",
        examples=[samples.CREATION],
    )


def _cancellation() -> Schema:
    return answer_object(
        {
            "serviceReservationId": uuid("The reservation."),
            "status": text("Always `cancelled`.", const="cancelled"),
            "cancelledAt": timestamp("When it was first cancelled."),
            "alreadyCancelled": {
                "const": True,
                "type": "boolean",
                "description": "Present when it was cancelled before this call.",
            },
        },
        optional=("alreadyCancelled",),
        description="The reservation is cancelled and its table free.",
        examples=[samples.CANCELLATION],
    )
