"""Letters in French."""

from appliance.mail.words import KindWords, Words

FRENCH = Words(
    language="fr",
    locale="fr",
    direction="ltr",
    colon="\N{NO-BREAK SPACE}: ",
    greeting="Bonjour {name},",
    greeting_without_name="Bonjour,",
    evening="Soirée",
    table="Table",
    guests="Vous serez",
    address="Adresse",
    code="Votre code",
    during="{day}, de {start} à {end}",
    whole_evening="{day}, toute la soirée",
    party={"one": "{count} personne", "other": "{count} personnes"},
    at_the_door="À l’entrée, montrez ce QR code ou dites votre code.",
    picture="QR code d’entrée. S’il ne s’affiche pas, dites le code {code} à l’entrée.",
    button="Ouvrir mon pass",
    link="Votre pass, toujours à jour, se trouve ici\N{NO-BREAK SPACE}:",
    see_button="Voir ma réservation",
    see_link="Votre réservation, toujours à jour, se trouve ici\N{NO-BREAK SPACE}:",
    minimum_spend="Minimum de la table",
    received="Déjà reçu",
    undo="Un empêchement\N{NO-BREAK SPACE}? Annulez ici\N{NO-BREAK SPACE}:",
    stop="Ne plus recevoir de rappels\N{NO-BREAK SPACE}:",
    calendar_title="Table chez {venue}",
    footer="Ce message automatique vous est envoyé par {venue} au sujet de votre réservation.",
    personal="Votre pass est personnel\N{NO-BREAK SPACE}: ne transférez ce message qu’à vos "
    "invités.",
    kinds={
        "confirmation": KindWords(
            subject="Votre réservation : {venue}, {day}",
            heading="Votre réservation est confirmée",
            intro="{venue} vous attend. Voici tout ce qu’il vous faut pour la soirée.",
        ),
        "requested": KindWords(
            subject="Votre demande : {venue}, {day}",
            heading="Votre demande est bien arrivée",
            intro="{venue} vous répondra bientôt par un autre message. D’ici là, la table vous "
            "est gardée.",
        ),
        "accepted": KindWords(
            subject="Demande acceptée : {venue}, {day}",
            heading="Votre demande est acceptée",
            intro="{venue} vous attend. Voici tout ce qu’il vous faut pour la soirée.",
        ),
        "declined": KindWords(
            subject="Demande refusée : {venue}, {day}",
            heading="Votre demande n’a pas pu être acceptée",
            intro="Il n’y avait pas de place chez {venue} ce soir-là, et nous le regrettons. Un "
            "autre soir vous conviendra peut-être.",
        ),
        "cancelled": KindWords(
            subject="Réservation annulée : {venue}, {day}",
            heading="Votre réservation est annulée",
            intro="La table est libérée et votre pass ne vaut plus. Au plaisir de vous "
            "accueillir un autre soir chez {venue}.",
        ),
        "reminder": KindWords(
            subject="Rappel : {venue}, {day}",
            heading="À très bientôt",
            intro="{venue} vous attend bientôt. Voici de nouveau tout ce qu’il vous faut pour "
            "la soirée.",
        ),
        "payment_due": KindWords(
            subject="Règlement attendu : {venue}, {day}",
            heading="Il reste votre règlement",
            intro="La table vous est gardée. La réservation sera confirmée dès que {venue} aura "
            "reçu votre règlement.",
        ),
    },
)
