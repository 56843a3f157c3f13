"""Refusals that no partner gets: those of the door, of the portal and of guests."""

from typing import ClassVar

from appliance.errors import (
    BodyTooLarge,
    KeyRevoked,
    RateLimited,
    ScopeMissing,
    Unauthorized,
    Unavailable,
    WrongState,
)


class TerminalNotPaired(Unauthorized):
    """The door's 401."""

    french = "Ce terminal n'est pas appairé avec ce lieu."
    english = "This terminal is not paired with this venue."


class TerminalRevoked(KeyRevoked):
    french = "L'accès de ce terminal a été retiré : appairez-le de nouveau."
    english = "This terminal's access was withdrawn: pair it again."


class BrowserRevoked(TerminalRevoked):
    """The same for a browser: what it keeps of the guests goes with its cookie."""

    headers: ClassVar[dict[str, str]] = {
        **KeyRevoked.headers,
        "Clear-Site-Data": '"storage", "cookies"',
    }


class PairingRefused(Unauthorized):
    french = "Code d'appairage inconnu, expiré ou déjà utilisé : demandez-en un nouveau."
    english = "Pairing code unknown, expired or already used: ask for a new one."


class PairingLater(RateLimited):
    french = "Trop de codes faux depuis cet appareil : scannez le QR, ou attendez dix minutes."
    english = "Too many wrong codes from this device: scan the QR code, or wait ten minutes."
    headers: ClassVar[dict[str, str]] = {"Retry-After": "600"}


class FormTooLarge(BodyTooLarge):
    """What people sent from a page, not a program."""

    french = (
        "C'est plus que la box ne prend en une fois (64 Kio) : "
        "raccourcissez, ou envoyez en plusieurs parties."
    )
    english = (
        "This is more than the box takes at once (64 KiB): shorten it, or send it in several parts."
    )


class TooManyBookings(RateLimited):
    french = "Trop de réservations à venir depuis cette connexion : appelez le lieu."
    english = "Too many bookings still to come from this connection: call the venue."


class RoleMissing(ScopeMissing):
    french = "Ce terminal n'a pas le droit requis : {role}."
    english = "This terminal lacks the required right: {role}."


class NothingToUndo(WrongState):
    french = "Rien à annuler : ce scan n'a fait entrer personne ({state})."
    english = "Nothing to undo: this scan let nobody in ({state})."


class TooManyWrongCodes(RateLimited):
    french = "Trop de codes faux sur ce terminal : réessayez dans une minute, ou scannez le QR."
    english = "Too many wrong codes on this terminal: try again in a minute, or scan the QR code."


class SignInLater(RateLimited):
    french = "Trop de mots de passe faux : réessayez dans {seconds} s. Rien n'est perdu."
    english = "Too many wrong passwords: try again in {seconds} s. Nothing is lost."


class CodeLater(SignInLater):
    french = "Trop de codes faux : réessayez dans {seconds} s. Rien n'est perdu."
    english = "Too many wrong codes: try again in {seconds} s. Nothing is lost."


class StaffRoleMissing(ScopeMissing):
    french = "Cette page est réservée : rôle requis {role}."
    english = "This page needs the role {role}."


class EndpointIsInactive(WrongState):
    french = "Cette adresse de webhook est désactivée : réactivez-la d'abord."
    english = "This webhook endpoint is deactivated: activate it first."


class OfferOver(WrongState):
    french = "Cela a pris plus d'un quart d'heure : recommencez avec un nouveau code QR."
    english = "This took more than a quarter of an hour: begin again with a new QR code."


class SlotIsHeld(WrongState):
    french = (
        "Des réservations à venir tiennent un créneau qui passerait d'un côté à l'autre "
        "de minuit : déplacez-les d'abord."
    )
    english = (
        "Coming reservations hold a slot that would move across midnight: please move them first."
    )


class ChangedMeanwhile(WrongState):
    french = "Quelqu'un a modifié cette fiche entre-temps : rien n'a été écrasé. Relisez-la."
    english = "Somebody changed this meanwhile: nothing was overwritten. Please read it again."


class FormUsed(WrongState):
    """A form that has made its reservation came again with something else in it."""

    french = (
        "Ce formulaire a déjà fait une réservation : rien de plus n'a été fait. "
        "Pour une autre, envoyez-le encore une fois."
    )
    english = (
        "This form has already made a reservation: nothing more was done. "
        "For another one, please send it once more."
    )


class UnusualAmount(WrongState):
    french = (
        "C'est bien plus que ce qu'une table verse d'habitude : rien n'a été enregistré. "
        "Si le montant est juste, confirmez-le et enregistrez-le encore une fois."
    )
    english = (
        "This is far more than a table usually pays: nothing was recorded. "
        "If the amount is right, confirm it and record it once more."
    )


class LastOwner(WrongState):
    french = (
        "Il faut au moins un propriétaire qui puisse se connecter : nommez-en un autre d'abord."
    )
    english = "At least one owner must be able to sign in: make somebody else an owner first."


class NameTaken(WrongState):
    french = "Quelqu'un se connecte déjà sous le nom {name} : choisissez-en un autre."
    english = "Somebody here signs in as {name}: choose another name."


class NotSetUp(Unavailable):
    """Nothing is served before the first owner is there (docs/security.md, S8)."""

    french = "Cette box n'est pas encore configurée : ouvrez le lien affiché à son démarrage."
    english = "This box is not set up yet: open the link that it shows when it starts."


class TooLateToCancel(WrongState):
    """For the guest; partners and staff may cancel at any time."""

    french = "Trop tard pour annuler ici : appelez l'établissement."
    english = "Too late to cancel here: please call the venue."
