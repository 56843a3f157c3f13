"""Letters in French."""

from appliance.mail.words import KindWords, Words

FRENCH = Words(
    language="fr",
    locale="fr",
    direction="ltr",
    colon=" : ",
    greeting="Bonjour {name},",
    greeting_without_name="Bonjour,",
    evening="Soirée",
    table="Table",
    guests="Vous serez",
    code="Votre code",
    during="{day}, de {start} à {end}",
    whole_evening="{day}, toute la soirée",
    party={"one": "{count} personne", "other": "{count} personnes"},
    at_the_door="À l’entrée, montrez ce QR code ou dites votre code.",
    picture="QR code d’entrée. S’il ne s’affiche pas, dites le code {code} à l’entrée.",
    button="Ouvrir mon pass",
    link="Votre pass, toujours à jour, se trouve ici :",
    footer="Ce message automatique vous est envoyé par {venue} au sujet de votre réservation. "
    "Votre pass est personnel : ne transférez ce message qu’à vos invités.",
    kinds={
        "confirmation": KindWords(
            subject="Votre réservation : {venue}, {day}",
            heading="Votre réservation est confirmée",
            intro="{venue} vous attend. Voici tout ce qu’il vous faut pour la soirée.",
        ),
    },
)
