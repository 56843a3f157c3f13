"""What the box itself has noted as wrong just now: its clock, its way out, its partners."""

from appliance.actions.confirm_clock import CLOCK_LEAPT
from appliance.actions.deactivate_endpoint import SWITCHED_OFF
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
    SWITCHED_OFF: "une clé d'API a désactivé une destination de webhooks qui n'est pas la sienne",
    NO_BACKUP: "la sauvegarde de la nuit n'a pas pu être faite",
    DAMAGED: "une base de données est abîmée",
    MAIL_SETTINGS: "aucune lettre ne part tant que mail.* n'est pas corrigé",
    MAIL_UNREACHABLE: "les lettres attendent : le serveur de courrier ne répond pas",
    "proxy_unknown": "des requêtes viennent d'un proxy ou d'un tunnel à l'adresse {subject}, qui "
    "n'est pas déclaré : tous ceux qui passent par lui comptent pour un seul. S'il est à vous, "
    "écrivez {detail} sous [server] dans le fichier des réglages, puis redémarrez la box",
    "proxy_says_nothing": "le proxy à l'adresse {subject} est déclaré, mais ne dit ni qui demande "
    "ni si c'est en https : il doit envoyer X-Forwarded-For et X-Forwarded-Proto "
    "(nginx : {detail})",
}
# In English, where the box noted no sentence but only what fills it.
ENGLISH = {
    "proxy_unknown": "requests come from a proxy or tunnel at {subject} that is not named: all who "
    "come through it count as one caller. If it is yours, write {detail} under [server] in the "
    "file of settings and restart the box",
    "proxy_says_nothing": "the proxy at {subject} is named, but does not say who asks and whether "
    "over https: have it send X-Forwarded-For and X-Forwarded-Proto (nginx: {detail})",
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
    SWITCHED_OFF: "عطّل مفتاح API نقطة استقبال للويب هوك لم يسجّلها",
    NO_BACKUP: "تعذّر صنع النسخة الاحتياطية الليلية",
    DAMAGED: "إحدى قواعد البيانات تالفة",
    MAIL_SETTINGS: "لا تخرج أي رسالة قبل تصحيح `mail.*`",
    MAIL_UNREACHABLE: "الرسائل تنتظر: خادم البريد لا يجيب",
    "reader_trouble": "قارئ موصول بالجهاز فيه خلل: {detail}",  # noted by terminal_bridge
    "proxy_unknown": "تأتي طلبات من وسيط أو نفق على العنوان {subject} غير مذكور في الإعدادات: "
    "يُحسب كل من يمر به طالبًا واحدًا. إن كان لكم فاكتبوا {detail} تحت `[server]` في ملف الإعدادات "
    "ثم أعيدوا تشغيل الجهاز",
    "proxy_says_nothing": "الوسيط على العنوان {subject} مذكور في الإعدادات، لكنه لا يقول من يطلب "
    "ولا هل الطلب عبر https: عليه أن يرسل `X-Forwarded-For` و`X-Forwarded-Proto` (في nginx: "
    "{detail})",
}
_OF_ENDPOINTS = {ENDPOINT_FAILING, ENDPOINT_BLOCKED, RECEIVER_CLOCK, SWITCHED_OFF}
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
    french = " ; ".join(dict.fromkeys(say_in_french(c) for c in found))
    english = "; ".join(dict.fromkeys(say_in_english(c) for c in found[:_SHOWN]))
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


def say_in_french(condition: Condition) -> str:
    """What the box noted; of a name that a newer version wrote, its English."""
    return FRENCH.get(condition.name, "{detail}").format(**_blanks(condition))


def say_in_english(condition: Condition) -> str:
    """As the box noted it."""
    return ENGLISH.get(condition.name, "{detail}").format(**_blanks(condition))


def say_in_arabic(condition: Condition) -> str:
    """As `say_in_french`."""
    if condition.name not in ARABIC:
        return apart(condition.detail)
    return fill(ARABIC[condition.name], _blanks(condition))


def _blanks(condition: Condition) -> dict[str, str]:
    return {"detail": condition.detail.rstrip("."), "subject": condition.subject}
