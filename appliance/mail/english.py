"""Letters in English."""

from appliance.mail.words import KindWords, Words

ENGLISH = Words(
    language="en",
    locale="en_GB",
    direction="ltr",
    colon=": ",
    greeting="Hello {name},",
    greeting_without_name="Hello,",
    evening="Evening",
    table="Table",
    guests="Party",
    address="Address",
    code="Your code",
    during="{day}, {start} to {end}",
    whole_evening="{day}, the whole evening",
    party={"one": "{count} guest", "other": "{count} guests"},
    at_the_door="At the door, show this QR code or say your code.",
    picture="QR code for the door. If you cannot see it, say the code {code} at the door.",
    button="Open my pass",
    link="Your pass, always up to date, is here:",
    see_button="See my reservation",
    see_link="Your reservation, always up to date, is here:",
    minimum_spend="Minimum of the table",
    received="Received so far",
    undo="Cannot come? Cancel here:",
    stop="To get no more reminders:",
    calendar_title="Table at {venue}",
    footer="{venue} sends you this automatic message about your reservation.",
    personal="Your pass is personal: forward this message to your own guests only.",
    kinds={
        "confirmation": KindWords(
            subject="Your reservation: {venue}, {day}",
            heading="Your reservation is confirmed",
            intro="{venue} is expecting you. Here is all you need for the evening.",
        ),
        "requested": KindWords(
            subject="Your request: {venue}, {day}",
            heading="Your request has arrived",
            intro="{venue} will answer you soon in another message. Until then, the table is "
            "kept for you.",
        ),
        "accepted": KindWords(
            subject="Request accepted: {venue}, {day}",
            heading="Your request is accepted",
            intro="{venue} is expecting you. Here is all you need for the evening.",
        ),
        "declined": KindWords(
            subject="Request declined: {venue}, {day}",
            heading="Your request could not be accepted",
            intro="We are sorry: {venue} had no room that evening. Another one may suit you.",
        ),
        "cancelled": KindWords(
            subject="Reservation cancelled: {venue}, {day}",
            heading="Your reservation is cancelled",
            intro="The table has been freed, and your pass is no longer good. We would be glad "
            "to welcome you at {venue} another evening.",
        ),
        "reminder": KindWords(
            subject="Reminder: {venue}, {day}",
            heading="See you soon",
            intro="{venue} is expecting you soon. Here again is all you need for the evening.",
        ),
        "payment_due": KindWords(
            subject="Payment due: {venue}, {day}",
            heading="Your payment is still due",
            intro="The table is kept for you. The reservation is confirmed as soon as {venue} "
            "has received your payment.",
        ),
    },
)
