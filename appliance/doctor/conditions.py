"""What the box itself has noted as wrong just now: its clock, its way out, its partners."""

from appliance.actions.confirm_clock import CLOCK_LEAPT
from appliance.actions.record_letter import MAIL_SETTINGS, MAIL_UNREACHABLE
from appliance.data_directory import ENVIRONMENTS
from appliance.doctor.arabic import apart, fill
from appliance.doctor.check import Check, Said, say, well
from appliance.doctor.patient import Patient
from appliance.store.conditions import Condition, list_conditions
from appliance.upkeep.nights import DAMAGED, NO_BACKUP
from appliance.webhooks.conditions import (
    CLOCK_HELD,
    CLOCK_UNCONFIRMED,
    ENDPOINT_BLOCKED,
    ENDPOINT_FAILING,
    OFFLINE,
    RECEIVER_CLOCK,
    UNWRITTEN,
)

# In French; the box noted the sentence in English.
FRENCH = {
    OFFLINE: "la box est coupée d'internet, les webhooks attendent",
    CLOCK_HELD: "l'horloge n'est pas sûre, les webhooks attendent",
    CLOCK_UNCONFIRMED: "les webhooks partent avec une heure qui n'est pas confirmée",
    CLOCK_LEAPT: "l'horloge a fait un saut que rien ne confirme, rien n'expire ; si sa date est "
    "juste, venuebox clock confirm",
    UNWRITTEN: "des résultats d'envois ne peuvent pas être écrits",
    ENDPOINT_FAILING: "une destination de webhooks ne répond pas",
    ENDPOINT_BLOCKED: "une destination de webhooks est à une adresse interdite",
    RECEIVER_CLOCK: "l'horloge d'un partenaire diffère de la nôtre",
    NO_BACKUP: "la sauvegarde de la nuit n'a pas pu être faite",
    DAMAGED: "une base de données est abîmée",
    MAIL_SETTINGS: "aucune lettre ne part tant que mail.* n'est pas corrigé",
    MAIL_UNREACHABLE: "les lettres attendent : le serveur de courrier ne répond pas",
}
# In Arabic, written as in arabic.py.
ARABIC = {
    OFFLINE: "الجهاز غير متصل بالإنترنت، والويب هوك تنتظر",
    CLOCK_HELD: "الساعة غير موثوقة، والويب هوك تنتظر",
    CLOCK_UNCONFIRMED: "تُرسل الويب هوك بوقت غير مؤكد",
    CLOCK_LEAPT: "قفزت الساعة ولم يؤكدها شيء، فلا ينتهي أي أجل في الأثناء",
    UNWRITTEN: "لا يمكن تدوين نتائج الإرسالات",
    ENDPOINT_FAILING: "نقطة استقبال للويب هوك لا تجيب",
    ENDPOINT_BLOCKED: "نقطة استقبال للويب هوك على عنوان غير مسموح",
    RECEIVER_CLOCK: "ساعة أحد الشركاء تختلف عن ساعة الجهاز",
    NO_BACKUP: "تعذّر صنع النسخة الاحتياطية الليلية",
    DAMAGED: "إحدى قواعد البيانات تالفة",
    MAIL_SETTINGS: "لا تخرج أي رسالة قبل تصحيح `mail.*`",
    MAIL_UNREACHABLE: "الرسائل تنتظر: خادم البريد لا يجيب",
    "reader_trouble": "قارئ موصول بالجهاز فيه خلل: {detail}",  # noted by terminal_bridge
}
_OF_ENDPOINTS = {ENDPOINT_FAILING, ENDPOINT_BLOCKED, RECEIVER_CLOCK}
_SHOWN = 3
_REMEDY = say(
    "Voyez l'horloge et le chemin vers internet ici, les destinations par venuebox endpoint list.",
    "See the clock and the way to the internet here, endpoints by venuebox endpoint list.",
)


def conditions(patient: Patient) -> Check:
    """What holds now. Of a box that is off, what it noted about its own process is past."""
    found: list[Condition] = []
    for environment in ENVIRONMENTS:
        with patient.rows(environment) as reader:
            found += list_conditions(reader)
    if not patient.runs:
        found = [condition for condition in found if condition.name in _OF_ENDPOINTS]
    if not found:
        return well("conditions", "La box ne signale rien.", "The box reports nothing.")
    french = " ; ".join(dict.fromkeys(FRENCH.get(c.name, c.name) for c in found))
    english = "; ".join(dict.fromkeys(c.detail.rstrip(".") for c in found[:_SHOWN]))
    arabic = "؛ ".join(dict.fromkeys(say_in_arabic(c) for c in found))
    more = f" (+{len(found) - _SHOWN})" if len(found) > _SHOWN else ""
    said = Said(
        f"La box signale : {french}.",
        f"The box reports: {english}{more}.",
        f"يشير الجهاز إلى ما يلي: {arabic}.",
        english="The box reports: {english}.",
    )
    failing = any(condition.name == UNWRITTEN for condition in found)
    return Check("conditions", "fail" if failing else "warn", said, _REMEDY)


def say_in_arabic(condition: Condition) -> str:
    """What the box noted; of a name that a newer version wrote, its English."""
    if condition.name not in ARABIC:
        return apart(condition.detail)
    return fill(ARABIC[condition.name], {"detail": condition.detail.rstrip(".")})
