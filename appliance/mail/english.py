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
    code="Your code",
    during="{day}, {start} to {end}",
    whole_evening="{day}, the whole evening",
    party={"one": "{count} guest", "other": "{count} guests"},
    at_the_door="At the door, show this QR code or say your code.",
    picture="QR code for the door. If you cannot see it, say the code {code} at the door.",
    button="Open my pass",
    link="Your pass, always up to date, is here:",
    footer="{venue} sends you this automatic message about your reservation. "
    "Your pass is personal: forward this message to your own guests only.",
    kinds={
        "confirmation": KindWords(
            subject="Your reservation: {venue}, {day}",
            heading="Your reservation is confirmed",
            intro="{venue} is expecting you. Here is all you need for the evening.",
        ),
    },
)
