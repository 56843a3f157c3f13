"""The checks as the portal says them: to people who run a venue, not a machine.

`venuebox doctor` says commands, files and settings, and instants in UTC. A manager has none of
these at hand: here stands what they can do, and what they ask of whoever installed the box.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from appliance.actions.confirm_clock import CLOCK_LEAPT
from appliance.actions.record_letter import MAIL_SETTINGS


@dataclass(frozen=True, slots=True)
class Instant:
    """A blank that is an instant: `text` in UTC for a technician, `at` (ms) for everybody else."""

    at: int
    text: str

    def __str__(self) -> str:
        """As the command line says it."""
        return self.text


@dataclass(frozen=True, slots=True)
class Plain:
    """A sentence in the words of the house; its blanks are those of the technician's."""

    fr: str
    en: str
    ar: str


_ASK = Plain(
    "Demandez à la personne qui a installé la box.",
    "Ask whoever installed the box.",
    "اسألوا من ثبّت الجهاز.",
)
_RESTART = Plain(
    "Redémarrez la box ; si cela reste, prévenez la personne qui l'a installée.",
    "Restart the box; if that changes nothing, tell whoever installed it.",
    "أعيدوا تشغيل الجهاز؛ وإن بقي الأمر فأخبروا من ثبّته.",
)
_RENEW = Plain(
    "Demandez à la personne qui a installé la box de le renouveler.",
    "Ask whoever installed the box to renew it.",
    "اطلبوا ممن ثبّت الجهاز تجديدها.",
)
_VERSION = Plain(
    "Demandez à la personne qui a installé la box d'y mettre une version récente.",
    "Ask whoever installed the box for a recent version.",
    "اطلبوا ممن ثبّت الجهاز إصدارًا حديثًا.",
)
_KEY = Plain(
    "Ne redémarrez pas la box, et prévenez tout de suite la personne qui l'a installée : "
    "la clé est dans les sauvegardes.",
    "Do not restart the box, and tell whoever installed it at once: the key is in the backups.",
    "لا تعيدوا تشغيل الجهاز، وأخبروا من ثبّته فورًا: المفتاح في النسخ الاحتياطية.",
)
_BACKUP = Plain(
    "Prévenez tout de suite la personne qui a installé la box : il faut remettre une sauvegarde.",
    "Tell whoever installed the box at once: a backup has to be put back.",
    "أخبروا من ثبّت الجهاز فورًا: يجب استرجاع نسخة احتياطية.",
)
_TIME = Plain(
    "Vérifiez l'accès à internet ; si l'heure reste fausse, prévenez la personne qui a installé "
    "la box.",
    "Check the way to the internet; if the time stays wrong, tell whoever installed the box.",
    "تحققوا من الاتصال بالإنترنت؛ وإن بقي الوقت خاطئًا فأخبروا من ثبّت الجهاز.",
)
_VOLUME = Plain(
    "Branchez le disque des sauvegardes ; s'il l'est déjà, prévenez la personne qui a installé "
    "la box.",
    "Plug the disk for backups in; if it is, tell whoever installed the box.",
    "صِلوا قرص النسخ الاحتياطية؛ وإن كان موصولًا فأخبروا من ثبّت الجهاز.",
)

# By the English of the checks, as arabic.py.
PLAIN: Mapping[str, Plain] = {
    # service.py
    "Start it: venuebox serve.": _ASK,
    "Restart it; if it listens elsewhere, say so in server.port.": _RESTART,
    "The settings cannot be read: {trouble}.": Plain(
        "Le fichier des réglages contient une erreur : la box ne redémarrera pas avec lui.",
        "There is an error in the file of settings: the box will not start with it.",
        "في ملف الإعدادات خطأ: لن يبدأ الجهاز من جديد معه.",
    ),
    "Correct settings.toml: the box does not start without it.": Plain(
        "Ne redémarrez pas la box, et demandez à la personne qui l'a installée de corriger ce "
        "fichier.",
        "Do not restart the box, and ask whoever installed it to correct that file.",
        "لا تعيدوا تشغيل الجهاز، واطلبوا ممن ثبّته تصحيح هذا الملف.",
    ),
    "server.app_url is empty: guests' links carry a guessed address.": Plain(
        "L'adresse publique n'est pas indiquée : les liens des invités portent une adresse "
        "devinée.",
        "The public address is not set: guests' links carry a guessed one.",
        "العنوان العام غير محدد: تحمل روابط الضيوف عنوانًا مخمَّنًا.",
    ),
    "Set in settings.toml the address under which guests reach the box.": Plain(
        "Indiquez l'adresse par laquelle les invités joignent la box.",
        "Set the address under which guests reach the box.",
        "حدّدوا العنوان الذي يصل به الضيوف إلى الجهاز.",
    ),
    "Put a certificate in front of the box and an https address into server.app_url.": Plain(
        "Il faut une adresse en https : la personne qui a installé la box vous la donne.",
        "An https address is needed: whoever installed the box knows how to get one.",
        "يلزم عنوان https: يعطيكم إياه من ثبّت الجهاز.",
    ),
    "Plug it in; else let the box read it (groups dialout, input).": Plain(
        "Branchez-le ; s'il l'est déjà, prévenez la personne qui a installé la box.",
        "Plug it in; if it is, tell whoever installed the box.",
        "صِلوه؛ وإن كان موصولًا فأخبروا من ثبّت الجهاز.",
    ),
    "Create it with venuebox terminal create, or correct settings.toml.": Plain(
        "Un lecteur doit s'en servir : prévenez la personne qui a installé la box.",
        "A reader is to use it: tell whoever installed the box.",
        "أحد القارئات يحتاجه: أخبروا من ثبّت الجهاز.",
    ),
    # files.py
    "Give them back: chown -R {owner} {root}": _ASK,
    "Run venuebox doctor --fix.": _ASK,
    "Restore the last backup to another directory and copy {path} from there.": _KEY,
    "The master key cannot be used: {trouble}.": Plain(
        "La clé maîtresse est absente, abîmée ou lisible par d'autres.",
        "The master key is missing, damaged, or can be read by others.",
        "المفتاح الرئيسي مفقود أو تالف أو يستطيع غيركم قراءته.",
    ),
    "Restore {path} from a backup, or run venuebox doctor --fix.": _KEY,
    "The list of erasures cannot be read: {list_trouble}.": Plain(
        "La liste des données effacées ne peut pas être lue.",
        "The list of what was erased cannot be read.",
        "لا يمكن قراءة قائمة عمليات المحو.",
    ),
    "Give it back to the owner of the box; damaged, put it aside and restart the box.": _RESTART,
    "Some lines of erasures.jsonl cannot be read: {numbers}.": Plain(
        "Une partie de la liste des données effacées est illisible.",
        "A part of the list of what was erased cannot be read.",
        "جزء من قائمة عمليات المحو غير مقروء.",
    ),
    "Restart the box: it notes again what its databases know. Then stop it and delete "
    "these lines.": _RESTART,
    # databases.py
    "{engine_trouble}.": Plain(
        "Le moteur de la base de données est trop ancien : il peut abîmer les données.",
        "The engine of the database is too old: it may damage the data.",
        "محرك قاعدة البيانات قديم: قد يُتلف البيانات.",
    ),
    "Install a recent venuebox.": _VERSION,
    "{names}: missing or damaged ({first}).": Plain(
        "Des données sont absentes ou abîmées ({names}).",
        "Data is missing or damaged ({names}).",
        "بيانات مفقودة أو تالفة ({names}).",
    ),
    "Stop the box, then run venuebox restore --latest: what is there is put aside.": _BACKUP,
    "The guest pass key of {environment} cannot be opened: {trouble}.": Plain(
        "La clé des pass ne s'ouvre pas : les codes des invités ne peuvent pas être vérifiés.",
        "The key of the guest passes cannot be opened: guests' codes cannot be checked.",
        "مفتاح بطاقات الضيوف لا يُفتح: لا يمكن التحقق من رموز الضيوف.",
    ),
    "Restore secrets/master.key and the databases from one backup.": _BACKUP,
    "Portal, Door, or venuebox signing-key rotate: passes already given stay valid.": Plain(
        "Changez-la dans le portail, sous « L'entrée » : les pass déjà donnés restent valables.",
        "Change it in the portal, under “Door”: passes already given stay valid.",
        "غيّروه من «المدخل» في البوابة: البطاقات التي لدى الضيوف تبقى صالحة.",
    ),
    # backups.py
    "{shelf_trouble}.": Plain(
        "Le dossier des sauvegardes, ou son disque, n'est pas là.",
        "The folder of the backups, or its disk, is not there.",
        "مجلد النسخ الاحتياطية أو قرصه غير موجود.",
    ),
    "Plug the volume in, or correct backup.directory.": _VOLUME,
    "Plug the volume for backups in, or name a folder elsewhere in backup.directory.": _VOLUME,
    "No backup has been proven yet{because}.": Plain(
        "Aucune sauvegarde n'a encore été vérifiée.",
        "No backup has been proven yet.",
        "لم تُختبر أي نسخة احتياطية بعد.",
    ),
    "Make one on the page about the box, or by venuebox backup, then print the kit.": Plain(
        "Faites-en une plus bas, puis imprimez le kit.",
        "Make one further down, then print the kit.",
        "اصنعوا واحدة أسفل هذه الصفحة، ثم اطبعوا بطاقة الاسترجاع.",
    ),
    "The last proven backup is of {when} UTC{because}.": Plain(
        "La dernière sauvegarde vérifiée date du {when}.",
        "The last proven backup is of {when}.",
        "آخر نسخة احتياطية مختبرة تعود إلى {when}.",
    ),
    "Leave the box on at night, or run venuebox backup.": Plain(
        "Laissez la box allumée la nuit, ou faites une sauvegarde plus bas.",
        "Leave the box on at night, or make a backup further down.",
        "اتركوا الجهاز مشغّلًا ليلًا، أو اصنعوا نسخة أسفل هذه الصفحة.",
    ),
    "Last backup restored and found whole: {when} UTC.": Plain(
        "Dernière sauvegarde restaurée et vérifiée : {when}.",
        "Last backup restored and found whole: {when}.",
        "آخر نسخة احتياطية استُعيدت ووُجدت كاملة: {when}.",
    ),
    # machine.py
    "The tz database {which} does not know Morocco's time since September 2026.": Plain(
        "La box ne connaît pas l'heure du Maroc depuis septembre 2026.",
        "The box does not know Morocco's time since September 2026.",
        "لا يعرف الجهاز توقيت المغرب منذ شتنبر 2026.",
    ),
    "Install a recent venuebox, or put a recent tzdata package (.whl) into the folder tz/ "
    "of the data directory and restart the box.": _VERSION,
    "tz database {which}: Casablanca is at UTC+00.": Plain(
        "La box connaît l'heure du Maroc.",
        "The box knows Morocco's time.",
        "يعرف الجهاز توقيت المغرب.",
    ),
    "The clock says {told}, and the box has already written {newest}.": Plain(
        "L'horloge de la box dit {told}, et elle a déjà noté {newest}.",
        "The box's clock says {told}, and it has already noted {newest}.",
        "تشير ساعة الجهاز إلى {told}، وسبق أن سجّل {newest}.",
    ),
    "The clock ({told}) is not kept right by the network.": Plain(
        "L'horloge de la box ({told}) n'est pas réglée par internet.",
        "The box's clock ({told}) is not kept right by the internet.",
        "ساعة الجهاز ({told}) لا تُضبط عبر الإنترنت.",
    ),
    "The clock ({told}) may not be kept right by the network.": Plain(
        "L'horloge de la box ({told}) n'est peut-être pas réglée par internet.",
        "The box's clock ({told}) may not be kept right by the internet.",
        "ساعة الجهاز ({told}) ربما لا تُضبط عبر الإنترنت.",
    ),
    "The clock is kept right by the network: {told}.": Plain(
        "L'horloge de la box est réglée par internet : {told}.",
        "The box's clock is kept right by the internet: {told}.",
        "ساعة الجهاز تُضبط عبر الإنترنت: {told}.",
    ),
    "Set the time: timedatectl set-ntp true, and check the way to the internet.": _TIME,
    # conditions.py
    "The box reports: {english}.": Plain(
        "La box signale quelque chose : voyez plus bas ce que c'est.",
        "The box reports something: see further down what it is.",
        "يشير الجهاز إلى أمر ما: انظروا إليه أسفل هذه الصفحة.",
    ),
    "See the clock and the way to the internet here, endpoints by venuebox endpoint list.": Plain(
        "Voyez ici l'horloge et internet ; les adresses des partenaires sous « Intégrations ».",
        "See the clock and the internet here; partners' addresses under “Integrations”.",
        "انظروا هنا إلى الساعة والإنترنت، وإلى عناوين الشركاء في صفحة الربط.",
    ),
    # partners.py
    "Fill in mail.host, mail.user, mail.password and mail.sender.": Plain(
        "Indiquez le serveur de votre messagerie.",
        "Set the mail server of your house.",
        "حدّدوا خادم بريدكم.",
    ),
    "{missing} is missing: no letter leaves.": Plain(
        "Il manque l'expéditeur ou le mot de passe du courrier : aucune lettre ne part.",
        "The sender or the password of the mail is missing: no letter leaves.",
        "المرسل أو كلمة سر البريد ناقص: لا تخرج أي رسالة.",
    ),
    "Fill it in in settings.toml and restart the box.": Plain(
        "Complétez les réglages du courrier, puis redémarrez la box.",
        "Complete the mail settings, then restart the box.",
        "أكملوا إعدادات البريد، ثم أعيدوا تشغيل الجهاز.",
    ),
    "Choose starttls or tls in mail.security.": Plain(
        "Choisissez la protection STARTTLS ou TLS dans les réglages du courrier.",
        "Choose STARTTLS or TLS in the mail settings.",
        "اختاروا الحماية `STARTTLS` أو `TLS` في إعدادات البريد.",
    ),
    "Check mail.* in settings.toml and the way to the internet.": Plain(
        "Vérifiez les réglages du courrier et l'accès à internet.",
        "Check the mail settings and the way to the internet.",
        "تحققوا من إعدادات البريد ومن الاتصال بالإنترنت.",
    ),
    "Tell the partner; if the address is blocked, see webhooks.allow_networks.": Plain(
        "Prévenez le partenaire ; si l'adresse est bloquée, la personne qui a installé la box "
        "peut la permettre.",
        "Tell the partner; if the address is blocked, whoever installed the box can allow it.",
        "أخبروا الشريك؛ وإن كان العنوان محظورًا فيستطيع من ثبّت الجهاز السماح به.",
    ),
    "Mend it with the partner, then replay them: venuebox deliveries shows them.": Plain(
        "Réglez cela avec le partenaire, puis renvoyez-les sous « Intégrations ».",
        "Mend it with the partner, then replay them under “Integrations”.",
        "أصلحوا الأمر مع الشريك، ثم أعيدوا إرسالها من صفحة الربط.",
    ),
    "{pending} deliveries wait, the oldest since {oldest}.": Plain(
        "{pending} envois attendent, le plus ancien depuis {oldest}.",
        "{pending} deliveries wait, the oldest since {oldest}.",
        "الإرسالات المنتظرة: {pending}، أقدمها منذ {oldest}.",
    ),
    # certificate.py
    "Import a new one: venuebox tls import.": _RENEW,
    "Run venuebox tls renew.": _RENEW,
    "Run venuebox tls renew; if nothing changes, venuebox tls renew --authority, "
    "then have each phone trust the box anew: /trust.": _RENEW,
    "Import a certificate for the address in server.app_url, or forget this one: "
    "venuebox tls forget.": _ASK,
    "Restart the box; if the port is taken, change server.tls_port.": _RESTART,
}  # fmt: skip

# What the box notes by itself, by its name: only what conditions.py says with a command or a key.
PLAIN_CONDITIONS: Mapping[str, Plain] = {
    CLOCK_LEAPT: Plain(
        "l'horloge a fait un saut que rien ne confirme, rien n'expire et rien n'est oublié",
        "the clock has leapt and nothing confirms it, nothing expires and nothing is forgotten",
        "قفزت الساعة ولم يؤكدها شيء، فلا ينتهي أي أجل ولا يُمحى شيء في الأثناء",
    ),
    MAIL_SETTINGS: Plain(
        "aucune lettre ne part tant que les réglages du courrier ne sont pas corrigés",
        "no letter leaves until the mail settings are corrected",
        "لا تخرج أي رسالة قبل تصحيح إعدادات البريد",
    ),
}
