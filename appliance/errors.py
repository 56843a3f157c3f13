"""Every documented refusal as a class: status, code, French, English (interface, section 7)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar


class Refusal(Exception):
    """Something the box declines to do, with the answer its caller gets.

    `field` is the JSON path of the offending member where there is one. Constructor
    arguments fill the braces of the two messages.
    """

    status: ClassVar[int]
    code: ClassVar[str]
    french: ClassVar[str]
    english: ClassVar[str]
    headers: ClassVar[dict[str, str]] = {}

    def __init__(self, *, field: str | None = None, **details: object) -> None:
        """Fill the messages with `details`; KeyError when a brace has no detail."""
        super().__init__(self.english.format(**details))
        self.field = field
        self.details = details
        self.error = self.french.format(**details)
        self.error_en = self.english.format(**details)

    def body(self) -> dict[str, str]:
        """The error body (interface, section 7), plus the optional `field`."""
        body = {"error": self.error, "error_en": self.error_en, "code": self.code}
        if self.field is not None:
            body["field"] = self.field
        return body


class InvalidJson(Refusal):
    status, code = 400, "INVALID_JSON"
    french = "Le corps de la requête n'est pas un objet JSON valide."
    english = "The request body is not a valid JSON object."


class InvalidDate(Refusal):
    status, code = 400, "INVALID_DATE"
    french = "Date invalide : attendu AAAA-MM-JJ."
    english = "Invalid date: expected YYYY-MM-DD."


class DateOutOfRange(Refusal):
    status, code = 400, "INVALID_DATE"
    french = "Date hors de la période de réservation : de ce soir à 730 jours."
    english = "Date outside the booking period: from tonight to 730 days ahead."


class InvalidDateRange(Refusal):
    status, code = 400, "INVALID_DATE"
    french = "Période invalide : deux dates AAAA-MM-JJ, la seconde pas avant la première."
    english = "Invalid period: two dates YYYY-MM-DD, the first not after the second."


class InvalidSlot(Refusal):
    status, code = 400, "INVALID_SLOT"
    french = "Créneau invalide : attendu HH:MM, le début d'un créneau proposé ce jour-là."
    english = "Invalid slot: expected HH:MM, the start of a slot offered on that day."


class SlotEnded(InvalidSlot):
    french = "Ce créneau est déjà terminé ce soir-là."
    english = "This slot has already ended on that date."


class InvalidTable(Refusal):
    status, code = 400, "INVALID_TABLE"
    french = "Identifiant de table invalide : attendu un UUID."
    english = "Invalid table identifier: expected a UUID."


class InvalidGuests(Refusal):
    status, code = 400, "INVALID_GUESTS"
    french = "Nombre de personnes invalide : attendu un entier d'au moins 1."
    english = "Invalid guest count: expected an integer of at least 1."


class GuestsOutOfRange(Refusal):
    status, code = 400, "GUESTS_OUT_OF_RANGE"
    french = "Cette table accueille de {capacity_min} à {capacity_max} personnes."
    english = "This table seats {capacity_min} to {capacity_max} guests."


class CustomerNameRequired(Refusal):
    status, code = 400, "CUSTOMER_NAME_REQUIRED"
    french = "Le nom du client (customer.name) est requis."
    english = "The customer's name (customer.name) is required."


class CustomerContactRequired(Refusal):
    status, code = 400, "CUSTOMER_CONTACT_REQUIRED"
    french = "Un e-mail ou un téléphone du client est requis."
    english = "An email or a phone number of the customer is required."


class InvalidEmail(Refusal):
    status, code = 400, "INVALID_EMAIL"
    french = "L'adresse e-mail du client est mal formée."
    english = "The customer's email address is malformed."


class IdempotencyKeyRequired(Refusal):
    status, code = 400, "IDEMPOTENCY_KEY_REQUIRED"
    french = "La clé d'idempotence (idempotencyKey) est requise."
    english = "The idempotency key (idempotencyKey) is required."


@dataclass(frozen=True, slots=True)
class Rule:
    """What a field must be, in French and English; `blanks` fill the braces of both."""

    french: str
    english: str
    blanks: Mapping[str, object] = field(default_factory=dict)


class ValidationError(Refusal):
    """`rule` is what pages say of the field, which they know by a name of their own."""

    status, code = 400, "VALIDATION_ERROR"
    french = "Champ invalide : {rule_fr}"
    english = "Invalid field: {rule}"
    rule: Rule | None = None

    @classmethod
    def of(cls, name: str, rule: Rule) -> "ValidationError":
        """The refusal of the field `name`."""
        fault = cls(
            field=name,
            rule_fr=f"{name} : {rule.french.format(**rule.blanks)}",
            rule=f"{name}: {rule.english.format(**rule.blanks)}",
        )
        fault.rule = rule
        return fault

    def inside(self, path: str) -> "ValidationError":
        """The same fault, of a member of what stands at `path`."""
        rules = {name: f"{path}.{text}" for name, text in self.details.items()}
        return ValidationError(field=f"{path}.{self.field}", **rules)


class MalformedRequest(ValidationError):
    """What arrived is not HTTP as the box reads it."""

    french = "La requête HTTP est mal formée."
    english = "The HTTP request is malformed."


class InvalidWebhookUrl(Refusal):
    status, code = 400, "INVALID_WEBHOOK_URL"
    french = "Adresse de webhook refusée : {rule_fr}"
    english = "Webhook URL refused: {rule}"


class WebhookUrlClosed(InvalidWebhookUrl):
    """One that the owner may open; `entry` is what `webhooks.allow_networks` then needs."""

    french = (
        "Adresse de webhook refusée : seules les adresses publiques sont ouvertes, au port {usual} "
        "ou à partir de 1024. L'établissement peut ouvrir celle-ci : ajouter {entry} à "
        "webhooks.allow_networks."
    )
    english = (
        "Webhook URL refused: only public addresses are open, at port {usual} or from 1024 on. "
        "The venue can open this one: add {entry} to webhooks.allow_networks."
    )


class InvalidEventType(Refusal):
    status, code = 400, "INVALID_EVENT_TYPE"
    french = "Liste d'événements invalide : au moins un type parmi ceux que l'API propose."
    english = "Invalid event list: at least one of the supported event types."


class Unauthorized(Refusal):
    status, code = 401, "UNAUTHORIZED"
    french = "Clé manquante ou invalide."
    english = "Missing or invalid key."
    headers: ClassVar[dict[str, str]] = {"WWW-Authenticate": 'Bearer realm="venuebox"'}


class KeyRevoked(Refusal):
    status, code = 401, "KEY_REVOKED"
    french = "Cette clé a été révoquée."
    english = "This key has been revoked."
    headers: ClassVar[dict[str, str]] = {"WWW-Authenticate": 'Bearer realm="venuebox"'}


class ScopeMissing(Refusal):
    status, code = 403, "SCOPE_MISSING"
    french = "Cette clé n'a pas le droit requis : {scope}."
    english = "This key lacks the required scope: {scope}."


class NotFound(Refusal):
    status, code = 404, "NOT_FOUND"
    french = "Introuvable."
    english = "Not found."


class TableNotFound(Refusal):
    status, code = 404, "TABLE_NOT_FOUND"
    french = "Cette table n'existe pas."
    english = "This table does not exist."


class MethodNotAllowed(Refusal):
    status, code = 405, "METHOD_NOT_ALLOWED"
    french = "Méthode non prise en charge à cette adresse."
    english = "Method not supported at this address."


class TableTaken(Refusal):
    status, code = 409, "TABLE_TAKEN"
    french = "Table déjà réservée pour ce créneau. Ne pas réessayer."
    english = "Table already reserved for this slot. Do not retry."


class TableNotBookable(Refusal):
    status, code = 409, "TABLE_NOT_BOOKABLE"
    french = "Cette table ne se réserve pas par l'interface."
    english = "This table cannot be reserved through the interface."


class VenueInactive(Refusal):
    status, code = 409, "VENUE_INACTIVE"
    french = "L'établissement n'accepte pas de réservation en ce moment."
    english = "The venue is not accepting reservations at present."


class VenueClosed(VenueInactive):
    """The same for one evening: a closing day."""

    french = "L'établissement est fermé ce soir-là : aucune réservation n'est possible."
    english = "The venue is closed on that evening: nothing can be booked."


class TooManyEndpoints(Refusal):
    status, code = 409, "TOO_MANY_ENDPOINTS"
    french = "Déjà 5 adresses de webhook actives : désactivez-en une d'abord."
    english = "5 webhook endpoints are already active: deactivate one first."


class WrongState(Refusal):
    """A staff action that the reservation's state does not allow (interface, section 3)."""

    status, code = 409, "WRONG_STATE"
    french = "Impossible dans l'état actuel de la réservation : {state}."
    english = "Not possible in the reservation's present state: {state}."


class BodyTooLarge(Refusal):
    status, code = 413, "BODY_TOO_LARGE"
    french = "Le corps de la requête dépasse 64 Kio."
    english = "The request body exceeds 64 KiB."


class Misdirected(Refusal):
    """Asked for under a name that is none of the box's (docs/security.md, S14)."""

    status, code = 421, "MISDIRECTED"
    french = "Cette box ne répond pas à ce nom : ajoutez-le à server.names s'il est le sien."
    english = "This box does not answer to that name: add it to server.names if it is its own."


class HttpsRequired(Refusal):
    """A key or a token came over plain http from another machine (docs/security.md, S32)."""

    status, code = 403, "HTTPS_REQUIRED"
    french = "Utilisez https : sans lui, d'autres peuvent lire votre clé. Remplacez-la."
    english = "Use https: without it others can read your key. Have it replaced."


class RateLimited(Refusal):
    status, code = 429, "RATE_LIMITED"
    french = "Trop de requêtes : réessayez dans 60 secondes."
    english = "Too many requests: try again in 60 seconds."
    headers: ClassVar[dict[str, str]] = {"Retry-After": "60"}


class InternalError(Refusal):
    status, code = 500, "INTERNAL_ERROR"
    french = "Erreur interne : rien n'a été enregistré. Réessayez."
    english = "Internal error: nothing was recorded. Try again."


class Unavailable(Refusal):
    status, code = 503, "UNAVAILABLE"
    french = "Service momentanément indisponible : rien n'a été enregistré. Réessayez."
    english = "Service temporarily unavailable: nothing was recorded. Try again."
    headers: ClassVar[dict[str, str]] = {"Retry-After": "5"}


class Trouble(Exception):
    """A problem for the person who runs the box: one sentence, what to do included."""
