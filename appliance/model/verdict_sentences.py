"""What the door says: one sentence to the staff and one to the guest, in fr, en and ar."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from types import MappingProxyType

from babel.dates import format_date

from appliance.model.verdict import Verdict

LANGUAGES = ("fr", "ar", "en")
# Britain's English says 21 November; Morocco's Arabic has its own months and the digits 0 to 9.
_LOCALES = {"fr": "fr_FR", "ar": "ar_MA", "en": "en_GB"}
_Pair = tuple[str, str]
_FIRST_ISOLATE, _POP_ISOLATE = "\u2068", "\u2069"  # keep a Latin name in place in Arabic text


@dataclass(frozen=True, slots=True)
class Sentences:
    """What a terminal shows its staff, and what it says to the guest."""

    staff: str
    guest: str


def phrase(verdict: Verdict, language: str) -> Sentences:
    """The two sentences of `verdict`; unknown languages get French."""
    known = language if language in LANGUAGES else "fr"
    staff, guest = _TEXTS[verdict.result][LANGUAGES.index(known)]
    if verdict.result == "already_checked_in" and verdict.first_check_in is None:
        staff = _IN_BEFORE[LANGUAGES.index(known)]
    details = _details(verdict, known)
    return Sentences(staff.format(**details), guest.format(**details))


def _details(verdict: Verdict, language: str) -> dict[str, str]:
    seen, first = verdict.reservation, verdict.first_check_in
    details = {"first": first.clock if first else "—", "terminal": _terminal(verdict)}
    if seen is not None:
        details |= {
            "table": seen.table_name,
            "admitted": _people(verdict.admitted, language),
            "party": _people(seen.guests, language),
            "arrived": str(seen.arrived),
            "guests": str(seen.guests),
        }
    if seen is not None and verdict.result in _OF_ANOTHER_TIME:
        details["when"] = _when(seen.date, seen.slot, language)
    if language == "ar":
        return {name: f"{_FIRST_ISOLATE}{text}{_POP_ISOLATE}" for name, text in details.items()}
    return details


def _terminal(verdict: Verdict) -> str:
    first = verdict.first_check_in
    names = [name for name in (first.terminal, first.by) if name] if first else []
    return ", ".join(names) or "—"


def _people(count: int, language: str) -> str:
    number = abs(count)
    if language == "fr":
        return f"{number} personne" if number < 2 else f"{number} personnes"
    if language == "en":
        return f"{number} guest" if number == 1 else f"{number} guests"
    if number in {1, 2}:
        return ("شخص واحد", "شخصان")[number - 1]
    return f"{number} أشخاص" if 3 <= number <= 10 else f"{number} شخصًا"


def _when(day: str, slot: str | None, language: str) -> str:
    when = format_date(date.fromisoformat(day), "EEEE d MMMM", locale=_LOCALES[language])
    at = {"fr": "à", "en": "at", "ar": "على الساعة"}[language]
    return when if slot is None else f"{when} {at} {slot}"


_OF_ANOTHER_TIME = frozenset({"not_yet", "too_late"})
# To the staff, where nobody knows since when a party is in.
_IN_BEFORE = (
    "Déjà entrés : {arrived} sur {guests}.",
    "سبق الدخول: {arrived} من {guests}.",
    "Already in: {arrived} of {guests}.",
)
# result: (French, Arabic, English), each (to the staff, to the guest)
_TEXTS: Mapping[str, tuple[_Pair, _Pair, _Pair]] = MappingProxyType(
    {
        "checked_in": (
            ("Entrée validée : {table}, {admitted}.", "Bienvenue, votre table : {table}."),
            ("يُسمح بالدخول: {table}، {admitted}.", "مرحبًا بكم، طاولتكم: {table}."),
            ("Let in: {table}, {admitted}.", "Welcome, your table is {table}."),
        ),
        "party_added": (
            (
                "Même groupe, {admitted} de plus : {arrived} sur {guests} sont là.",
                "Bienvenue, on vous attend : {table}.",
            ),
            ("المجموعة نفسها: حضر {arrived} من {guests}.", "مرحبًا بكم، مجموعتكم هنا: {table}."),
            (
                "Same party, {admitted} more: {arrived} of {guests} are in.",
                "Welcome, your party is at {table}.",
            ),
        ),
        "already_checked_in": (
            (
                "Déjà entrés à {first} ({terminal}) : {arrived} sur {guests}.",
                "Ce code a déjà servi : voyez avec l'accueil.",
            ),
            (
                "سبق الدخول على الساعة {first} ({terminal}): {arrived} من {guests}.",
                "استُعمل هذا الرمز من قبل، يرجى التوجه إلى الاستقبال.",
            ),
            (
                "Already in since {first} ({terminal}): {arrived} of {guests}.",
                "This code was already used: please see the host.",
            ),
        ),
        "party_full": (
            (
                "Plus de monde que réservé : {arrived} sur {guests} sont déjà là.",
                "Votre réservation est pour {party}.",
            ),
            (
                "العدد أكبر من المحجوز: حضر {arrived} من {guests}.",
                "حجزكم مخصص لـ {party}.",
            ),
            (
                "More people than booked: {arrived} of {guests} are already in.",
                "Your reservation is for {party}.",
            ),
        ),
        "not_yet": (
            ("Trop tôt : attendus le {when}.", "Votre réservation est pour le {when}."),
            ("قبل الموعد: الحجز يوم {when}.", "حجزكم يوم {when}."),
            ("Too early: expected on {when}.", "Your reservation is for {when}."),
        ),
        "too_late": (
            ("Trop tard : attendus le {when}.", "Votre réservation était pour le {when}."),
            ("فات الموعد: كان الحجز يوم {when}.", "كان حجزكم يوم {when}."),
            ("Too late: expected on {when}.", "Your reservation was for {when}."),
        ),
        "not_confirmed": (
            ("Demande pas encore acceptée.", "Votre demande attend une réponse : un instant."),
            ("لم يُقبل الطلب بعد.", "طلبكم في انتظار الرد، لحظة من فضلكم."),
            ("Request not accepted yet.", "Your request awaits an answer: one moment, please."),
        ),
        "payment_due": (
            ("Paiement incomplet.", "Il reste un paiement à régler : voyez avec l'accueil."),
            ("الدفع غير مكتمل.", "بقي مبلغ للدفع، يرجى التوجه إلى الاستقبال."),
            ("Payment incomplete.", "A payment is still due: please see the host."),
        ),
        "ambiguous": (
            ("Plusieurs réservations possibles : choisissez.", "Un instant, nous cherchons."),
            ("عدة حجوزات ممكنة: اختاروا الصحيح.", "لحظة من فضلكم، نبحث عن حجزكم."),
            ("Several reservations fit: pick one.", "One moment, we are looking."),
        ),
        "cancelled": (
            ("Réservation annulée, table libérée.", "Cette réservation a été annulée."),
            ("الحجز ملغى والطاولة متاحة لغيره.", "أُلغي هذا الحجز."),
            ("Reservation cancelled, table freed.", "This reservation was cancelled."),
        ),
        "declined": (
            ("Demande refusée, table libérée.", "Cette demande n'a pas été acceptée."),
            ("الطلب مرفوض والطاولة متاحة لغيره.", "لم يُقبل هذا الطلب."),
            ("Request declined, table freed.", "This request was not accepted."),
        ),
        "revoked": (
            (
                "Code remplacé : demandez le plus récent.",
                "Ce code a été remplacé : ouvrez le lien de votre réservation.",
            ),
            ("استُبدل هذا الرمز: اطلبوا الأحدث.", "استُبدل هذا الرمز، افتحوا رابط حجزكم."),
            (
                "Code replaced: ask for the newest one.",
                "This code was replaced: please open the link of your reservation.",
            ),
        ),
        "wrong_venue": (
            ("Code d'un autre établissement.", "Ce code est celui d'un autre établissement."),
            ("رمز مؤسسة أخرى.", "هذا الرمز خاص بمؤسسة أخرى."),
            ("Code of another venue.", "This code belongs to another venue."),
        ),
        "test_code": (
            (
                "Code de l'autre environnement, test ou réel.",
                "Ce code n'est pas valable ici.",
            ),
            ("رمز البيئة الأخرى، تجريبية أو فعلية.", "هذا الرمز غير صالح هنا."),
            ("Code of the other environment, test or live.", "This code is not valid here."),
        ),
        "bad_signature": (
            ("Code abîmé ou falsifié.", "Code illisible : montrez-le encore une fois."),
            ("رمز تالف أو مزوّر.", "تعذرت قراءة الرمز، أعيدوا عرضه من فضلكم."),
            ("Code damaged or forged.", "Unreadable code: please show it once more."),
        ),
        "unknown_code": (
            ("Code inconnu ce soir.", "Nous ne trouvons pas ce code : un instant."),
            ("رمز غير معروف هذه الليلة.", "لم نجد هذا الرمز، لحظة من فضلكم."),
            ("Code unknown tonight.", "We cannot find this code: one moment, please."),
        ),
        "undone": (
            ("Entrée annulée : {arrived} sur {guests} comptés.", "Un instant, s'il vous plaît."),
            ("أُلغي تسجيل الدخول: {arrived} من {guests}.", "لحظة من فضلكم."),
            ("Check-in taken back: {arrived} of {guests} counted.", "One moment, please."),
        ),
        "error": (
            ("Erreur de la box : scannez encore.", "Un instant, s'il vous plaît."),
            ("خطأ في النظام: أعيدوا المسح.", "لحظة من فضلكم."),
            ("Our fault: scan again.", "One moment, please."),
        ),
    }
)
