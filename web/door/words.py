"""Every word of the door app, in one language: the page carries them to its script."""

from appliance.i18n import Language

_COUNTED = {"zero": 0, "one": 1, "two": 2, "few": 3, "many": 11, "other": 100}


def door_words(language: Language) -> dict[str, str]:
    """The app's words by the names that its script calls them by.

    `{name}` in a text is filled by the script; `guests.<category>` is the plural form of that
    category of Unicode's plural rules.
    """
    return _room(language) | _sheets(language) | _verdicts(language) | _sentences(language)


def _room(language: Language) -> dict[str, str]:
    """Pairing, the camera and the bar above it."""
    _ = language.gettext
    return {
        "app": _("Door"),
        "test": _("TEST: nothing here is real"),
        "pair.title": _("Pair this phone"),
        "pair.help": _("Open Door in the portal, let it show a code, and type it here."),
        "pair.linked": _("One tap, and this phone scans for the house."),
        "pair.code": _("8-digit code"),
        "pair.name": _("Name of this door (optional)"),
        "pair.go": _("Pair"),
        "pair.refused": _("This code is unknown, used or too old. Ask for a new one."),
        "pair.later": _("Too many wrong codes. Scan the QR of the portal, or wait ten minutes."),
        "pair.digits": _("The code has 8 digits."),
        "pair.away": _("The box does not answer. Check the Wi-Fi and try again: nothing is lost."),
        "pair.revoked": _("This phone was unpaired and its list erased. Pair it again to go on."),
        "pair.lost": _(
            "Let in here, and unknown to the box for good: {people}. Tell the manager: they are "
            "checked in by hand."
        ),
        "pair.kept": _(
            "Scans that the box has not heard of yet: {count}. They stay here, and are sent once "
            "this phone is paired again."
        ),
        "insecure.title": _("This address is not protected"),
        "insecure.help": _("Phones lend their camera to https pages only. Open the door here:"),
        "start": _("Start scanning"),
        "start.help": _("Typed codes, names and USB scanners work without the camera too."),
        "photo": _("Take a photo of the code"),
        "photo.empty": _("No code in this photo. Come closer, and let the code fill the picture."),
        "retry": _("Try again"),
        "camera.refused": _("The camera is not allowed"),
        "camera.refused.help": _(
            "Tap the sign beside the page's address, allow the camera, then try again."
        ),
        "camera.none": _("No camera found"),
        "camera.none.help": _("A photo, the typed code or a USB scanner work as well."),
        "camera.busy": _("Another app holds the camera"),
        "camera.busy.help": _("Close it, then try again."),
        "camera.failed": _("The code reader did not start"),
        "camera.failed.help": _("Type the code or search the name meanwhile."),
        "aim": _("Hold the code in the frame"),
        "torch": _("Light"),
        "camera.next": _("Other camera"),
        "list": _("Guest list"),
        "type": _("Type a code"),
        "menu": _("Settings"),
        "recent": _("Last five verdicts"),
        "recent.empty": _("Nobody was scanned here yet."),
        "box.up": _("Connected to the box"),
        "box.down": _("Box out of reach: this phone decides"),
        "waiting": _("{count} to send"),
        "stuck": _("{count} to send, which the box does not take. {reason} Tell the manager."),
        "counter": _("{arrived} of {expected} have arrived"),
    }


def _sheets(language: Language) -> dict[str, str]:
    """The typed code, the list, a guest, the settings, a conflict."""
    _ = language.gettext
    return {
        "close": _("Close"),
        "code.label": _("Access code or name"),
        "code.help": _("Four signs, as in SVC-7K2M: the first three letters can be left out."),
        "code.go": _("Check"),
        "search": _("Name, code, table, phone"),
        "filter.all": _("All"),
        "filter.expected": _("Expected"),
        "filter.arrived": _("Arrived"),
        "list.empty": _("Nobody is on tonight's list yet."),
        "list.none": _("Nobody fits. Try the code or the table."),
        "list.role": _("This phone may scan, not search. Type the code instead."),
        "here": _("How many are here?"),
        "fewer": _("One fewer"),
        "more": _("One more"),
        "check_in": _("Check in"),
        "take_back": _("Take the last check-in back"),
        "take_back.why": _("Why take it back?"),
        "take_back.wrong": _("Wrong guest"),
        "take_back.left": _("They left again"),
        "take_back.count": _("Wrong count"),
        "take_back.go": _("Yes, take back"),
        "language": _("Language"),
        "sound": _("Sound"),
        "vibration": _("Vibration"),
        "terminal": _("This phone"),
        "list.age": _("List of {time}"),
        "list.refused": _("The box's new list is not signed as it should be: tell the manager."),
        "list.absent": _("No list yet: without the box nobody is green."),
        "unpair": _("Unpair this phone"),
        "unpair.sure": _("Unpair and erase everything here?"),
        "unpair.unsent": _("Scans not sent to the box yet: {count}. Unpaired now, they are lost."),
        "unpair.yes": _("Yes, unpair"),
        "conflict.title": _("Same party at two doors"),
        "conflict.text": _(
            "{name}, {table}: admitted here and at {door} at {time} while the doors were apart."
        ),
        "conflict.count": _("{arrived} entries counted for {guests} booked."),
        "conflict.anyway": _("Let in while apart"),
        "conflict.despite": _("{name}, {table}: let in without the box, which says: {word}."),
        "conflict.role": _(
            "{name}, {table}: let in with a reason by a phone that may not do so any more. They "
            "are counted; the box says: {word}. The manager sees it in the portal."
        ),
        "conflict.unknown": _(
            "{door}, {time}: somebody was let in without the box, which cannot tell who "
            "({word}). Ask who it was, and check them in from the list."
        ),
        "conflict.ok": _("Understood"),
        "nobody": _("Guest"),
        "another": _("another door"),
        "whole": _("Whole evening"),
    } | {
        f"guests.{category}": language.ngettext(
            "%(count)s guest", "%(count)s guests", number, count="{count}"
        )
        for category, number in _COUNTED.items()
    }


def _verdicts(language: Language) -> dict[str, str]:
    """The one big word of each verdict, and what can be done about it."""
    _ = language.gettext
    return {
        "word.checked_in": _("Come in"),
        "word.party_added": _("Come in too"),
        "word.already_checked_in": _("Already in"),
        "word.party_full": _("Too many"),
        "word.not_yet": _("Too early"),
        "word.too_late": _("Too late"),
        "word.not_confirmed": _("Not confirmed"),
        "word.payment_due": _("Not paid"),
        "word.ambiguous": _("Which one?"),
        "word.cancelled": _("Was cancelled"),
        "word.declined": _("Was declined"),
        "word.revoked": _("Old code"),
        "word.wrong_venue": _("Another venue"),
        "word.test_code": _("Not valid here"),
        "word.bad_signature": _("Not genuine"),
        "word.unknown_code": _("Unknown"),
        "word.undone": _("Taken back"),
        "word.error": _("Scan again"),
        "word.unlisted": _("Not listed"),
        "word.old_list": _("List too old"),
        "word.needs_box": _("Ask the box"),
        "word.refused": _("Not possible"),
        "vip": _("VIP"),
        "offline": _("Decided by this phone"),
        "undo": _("Undo"),
        "next": _("Next guest"),
        "next.waiting": _("{count} waiting"),
        "override": _("Let in anyway"),
        "reason": _("Why?"),
        "reason.known": _("Known to the house"),
        "reason.manager": _("Manager says yes"),
        "reason.paid": _("Paid at the door"),
        "reason.other": _("Another reason"),
        "reason.go": _("Let in"),
        "reason.at_once": _("Taken back right away at the door"),
        "reason.fewer": _("Fewer came than were counted"),
        "reason.undone": _("Undone at the door while the box was out of reach"),
        "preview": _("Ready for the next code"),
    }


def _sentences(language: Language) -> dict[str, str]:
    """What the app says where the box has not, or not in this language."""
    _ = language.gettext
    return {
        "say.checked_in": _("{party} in."),
        "say.party_added": _("{admitted} more of the same party."),
        "say.already_checked_in": _("The whole party is in: {arrived} of {guests}."),
        "say.already_since": _("In since {time}, {door}: {arrived} of {guests}."),
        "say.already_at": _("In since {time}: {arrived} of {guests}."),
        "say.party_full": _("More people than booked: {arrived} of {guests} are in."),
        "say.not_yet": _("Expected on {date} at {slot}."),
        "say.too_late": _("Was expected on {date} at {slot}."),
        "say.another_evening": _("The code is genuine, for another evening."),
        "say.not_confirmed": _("The request is not accepted yet."),
        "say.payment_due": _("The payment is not complete."),
        "say.ambiguous": _("Several guests fit: tap the right one."),
        "say.cancelled": _("The reservation was cancelled and its table freed."),
        "say.declined": _("The request was declined and its table freed."),
        "say.revoked": _("The code was replaced: ask for the newest one."),
        "say.wrong_venue": _("The code belongs to another venue."),
        "say.test_code": _("The code is of the other environment, test or live."),
        "say.bad_signature": _("The code is damaged or forged."),
        "say.unknown_code": _("Nobody has this code tonight."),
        "say.undone": _("{arrived} of {guests} are counted now."),
        "say.error": _("It was the box, not the guest: scan once more."),
        "say.error_here": _("It was this phone, not the guest: scan once more."),
        "say.unsaved": _(
            "This phone cannot write it down: leave this page open until the box is back."
        ),
        "say.unlisted": _("The code is genuine but not on this phone's list: ask the manager."),
        "say.old_list": _("On the list, but the list is over 12 hours old: ask the manager."),
        "refused.RATE_LIMITED": _("Too many wrong codes: scan the QR, or wait a minute."),
        "refused.WRONG_STATE": _("It has changed meanwhile: look at the list once more."),
        "refused.SCOPE_MISSING": _("This phone may not do that: ask the manager."),
        "say.needs_box": _(
            "Only the box can tell, and it is away: ask for the QR code, or search the list."
        ),
        "say.refused": _("The box declined, and nothing was changed."),
    }
