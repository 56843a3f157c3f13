"""The Arabic of the checks, by their English.

Commands, files and settings stand between backticks here. They and what fills a blank are Latin
mostly, so each becomes an isolate of its own: it turns nothing around it.
"""

import re
from collections.abc import Mapping

FREE, LATIN, END = "\u2068", "\u2066", "\u2069"  # an isolate of its own direction, one of Latin
_TURNING = re.compile("[\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_CODE = re.compile("`([^`]+)`")

ARABIC = {
    # examination.py
    "It could not be examined ({kind}).": "تعذّر الفحص ({kind}).",
    "Look at the findings above; else keep this message for whoever helps you.":
        "انظروا إلى النتائج أعلاه؛ وإلا فاحتفظوا بهذه الرسالة لمن يساعدكم.",
    # service.py
    "The box is not running.": "الجهاز لا يعمل.",
    "Start it: venuebox serve.": "شغّلوها: `venuebox serve`.",
    "The box is running and answers.": "الجهاز يعمل ويجيب.",
    "The box is running, but cannot write any more.":
        "الجهاز يعمل، لكنه لم يعد قادرًا على الكتابة.",
    "Look at the disk above and at the log of the box, then restart it.":
        "انظروا إلى القرص أعلاه وإلى سجل الجهاز، ثم أعيدوا تشغيله.",
    "The box is running, but does not answer at {where}.":
        "الجهاز يعمل، لكنه لا يجيب على {where}.",
    "Restart it; if it listens elsewhere, say so in server.port.":
        "أعيدوا تشغيلها؛ وإن كانت تستمع على منفذ آخر فاذكروه في `server.port`.",
    "The settings cannot be read: {trouble}.": "لا يمكن قراءة الإعدادات: {trouble}.",
    "Correct settings.toml: the box does not start without it.":
        "صحّحوا `settings.toml`: لا يبدأ الجهاز قبل ذلك.",
    "server.app_url is empty: guests' links carry a guessed address.":
        "`server.app_url` فارغ: تحمل روابط الضيوف عنوانًا مخمَّنًا.",
    "Set in settings.toml the address under which guests reach the box.":
        "اكتبوا في `settings.toml` العنوان الذي يصل به الضيوف إلى الجهاز.",
    "{url} is not encrypted: phones give it neither camera nor offline page.":
        "{url} غير مشفّر: لا تتيح له الهواتف الكاميرا ولا الصفحة دون شبكة.",
    "Put a certificate in front of the box and an https address into server.app_url.":
        "ضعوا شهادة أمام الجهاز، وعنوان https في `server.app_url`.",
    "Guests reach the box at {url}.": "يصل الضيوف إلى الجهاز على {url}.",
    "The reader {place} is not plugged in, or cannot be read.":
        "القارئ {place} غير موصول، أو لا يمكن القراءة منه.",
    "Plug it in; else let the box read it (groups dialout, input).":
        "صِلوه؛ وإلا فامنحوا الجهاز حق القراءة منه (المجموعتان `dialout` و`input`).",
    "There is no terminal called {named} ({environment}).":
        "لا يوجد جهاز باسم {named} ({environment}).",
    "Create it with venuebox terminal create, or correct settings.toml.":
        "أنشئوه بالأمر `venuebox terminal create`، أو صحّحوا `settings.toml`.",
    "{count} readers plugged in.": "القارئات الموصولة: {count}.",
    # files.py
    "Some files do not belong to the owner of the box: {named}.":
        "بعض الملفات ليست للمستخدم الذي يعمل به الجهاز: {named}.",
    "Give them back: chown -R {owner} {root}": "أعيدوها إليه: `chown -R {owner} {root}`",
    "Other users can read {named}.": "يستطيع مستخدمون آخرون قراءة {named}.",
    "Run venuebox doctor --fix.": "نفّذوا `venuebox doctor --fix`.",
    "Only the owner of the box can read its files.":
        "لا يقرأ ملفات الجهاز إلا المستخدم الذي يعمل به.",
    "The master key is missing: no link and no pass can be read.":
        "المفتاح الرئيسي مفقود: لا يمكن قراءة أي رابط أو بطاقة.",
    "Restore the last backup to another directory and copy {path} from there.":
        "استعيدوا آخر نسخة احتياطية إلى مجلد آخر، وانسخوا منه {path}.",
    "The master key cannot be used: {trouble}.":
        "المفتاح الرئيسي مفقود أو تالف أو يستطيع غيركم قراءته.",
    "Restore {path} from a backup, or run venuebox doctor --fix.":
        "استعيدوا {path} من نسخة احتياطية، أو نفّذوا `venuebox doctor --fix`.",
    "The master key is there.": "المفتاح الرئيسي موجود.",
    "Unfinished files were left by a power cut: {named}.":
        "بقيت ملفات غير مكتملة بعد انقطاع الكهرباء: {named}.",
    "You may delete them while the box is stopped.": "يمكنكم حذفها عندما يكون الجهاز متوقفًا.",
    "No unfinished files.": "لا توجد ملفات غير مكتملة.",
    "The list of erasures cannot be read: {list_trouble}.":
        "لا يمكن قراءة قائمة عمليات المحو `erasures.jsonl`.",
    "Give it back to the owner of the box; damaged, put it aside and restart the box.":
        "أعيدوها إلى المستخدم الذي يعمل به الجهاز؛ وإن كانت تالفة فضعوها جانبًا وأعيدوا تشغيل "
        "الجهاز.",
    "Some lines of erasures.jsonl cannot be read: {numbers}.":
        "في `erasures.jsonl` أسطر لا يمكن قراءتها: {numbers}.",
    "Restart the box: it notes again what its databases know. Then stop it and delete "
    "these lines.":
        "أعيدوا تشغيل الجهاز: يسجّل من جديد ما تعرفه قواعد بياناته. ثم أوقفوه واحذفوا هذه الأسطر.",
    "The list of erasures can be read.": "قائمة عمليات المحو مقروءة.",
    # databases.py
    "{engine_trouble}.": "قد يُتلف `SQLite {version}` البيانات.",
    "Install a recent venuebox.": "ثبّتوا إصدارًا حديثًا من venuebox.",
    "SQLite {version}.": "إصدار `SQLite`: {version}.",
    "{names}: missing or damaged ({first}).": "{names}: مفقودة أو تالفة ({first}).",
    "Stop the box, then run venuebox restore --latest: what is there is put aside.":
        "أوقفوا الجهاز، ثم نفّذوا `venuebox restore --latest`: يُحفظ جانبًا ما هو موجود.",
    "The databases cannot be opened: nothing can be written in {root}, or its disk is full.":
        "لا يمكن فتح قاعدتي البيانات: لا تمكن الكتابة في {root}، أو أن القرص ممتلئ.",
    "Make room, or give these files back to the box; the databases are not to blame.":
        "أفسحوا مكانًا على القرص، أو أعيدوا هذه الملفات إلى الجهاز؛ لا عيب في قاعدتي البيانات.",
    "Both databases are sound.": "قاعدتا البيانات سليمتان.",
    "The data was written by a newer version (schema {found}, here {known}).":
        "البيانات من إصدار أحدث (المخطط {found}، وهنا {known}).",
    "Install that version again: nothing was changed.":
        "أعيدوا تثبيت ذلك الإصدار: لم يتغيّر شيء.",
    "The data will be upgraded at the next start ({found} to {known}).":
        "ستُحدَّث البيانات عند التشغيل القادم (من {found} إلى {known}).",
    "Start the box with this version: a copy is kept before.":
        "شغّلوا الجهاز بهذا الإصدار: تُحفظ نسخة قبل ذلك.",
    "Schema {known}.": "المخطط {known}.",
    "The write-ahead log has grown to {size} MiB: something reads without end.":
        "بلغ سجل الكتابة `{size} MiB`: شيء ما يقرأ دون توقف.",
    "Close running exports, then restart the box.":
        "أغلقوا عمليات التصدير الجارية، ثم أعيدوا تشغيل الجهاز.",
    "Write-ahead log: {size} MiB.": "سجل الكتابة: `{size} MiB`.",
    "The guest pass key of {environment} cannot be opened: {trouble}.":
        "مفتاح بطاقات الضيوف ({environment}) لا يُفتح.",
    "Restore secrets/master.key and the databases from one backup.":
        "استعيدوا `secrets/master.key` وقاعدتي البيانات من نسخة احتياطية واحدة.",
    "The guest pass key is {days} days old: it is changed every year.":
        "عمر مفتاح بطاقات الضيوف بالأيام: {days}. يُغيَّر كل سنة.",
    "Portal, Door, or venuebox signing-key rotate: passes already given stay valid.":
        "من «المدخل» في البوابة، أو بالأمر `venuebox signing-key rotate`: "
        "البطاقات التي لدى الضيوف تبقى صالحة.",
    "The guest pass key is {days} days old.": "عمر مفتاح بطاقات الضيوف بالأيام: {days}.",
    # backups.py
    "{shelf_trouble}.": "مجلد النسخ الاحتياطية أو وحدة تخزينه غير موجود.",
    "Backups go to {shelf}, on the same volume as the box: if it breaks, both are lost.":
        "تُحفظ النسخ الاحتياطية في {shelf}، على وحدة التخزين نفسها التي عليها الجهاز: "
        "إن تعطّلت ضاع كل شيء.",
    "Plug the volume for backups in, or name a folder elsewhere in backup.directory.":
        "صِلوا وحدة تخزين النسخ الاحتياطية، أو اذكروا في `backup.directory` مجلدًا في مكان آخر.",
    "Plug the volume in, or correct backup.directory.":
        "صِلوا وحدة التخزين، أو صحّحوا `backup.directory`.",
    "No backup has been proven yet{because}.": "لم تُختبر أي نسخة احتياطية بعد.",
    "Make one on the page about the box, or by venuebox backup, then print the kit.":
        "اصنعوا نسخة من صفحة الجهاز، أو نفّذوا `venuebox backup`، ثم اطبعوا بطاقة الاسترجاع.",
    "The last proven backup is of {when} UTC{because}.":
        "آخر نسخة احتياطية مختبرة تعود إلى `{when} UTC`.",
    "Leave the box on at night, or run venuebox backup.":
        "اتركوا الجهاز مشغّلًا ليلًا، أو نفّذوا `venuebox backup`.",
    "Last backup restored and found whole: {when} UTC.":
        "آخر نسخة احتياطية استُعيدت ووُجدت كاملة: `{when} UTC`.",
    # machine.py
    "{mib} MiB are left on the disk.": "المساحة الباقية على القرص: `{mib} MiB`.",
    "Delete what is not the box's, or enlarge the volume.":
        "احذفوا ما لا يخص الجهاز، أو وسّعوا وحدة التخزين.",
    "The volume has room for {left} files.": "عدد الملفات التي تتسع لها وحدة التخزين: {left}.",
    "Delete the many small files that fill the volume.":
        "احذفوا الملفات الصغيرة الكثيرة التي تملأ وحدة التخزين.",
    "{mib} MiB of memory are free.": "الذاكرة المتاحة: `{mib} MiB`.",
    "Stop other programs on this machine, or add memory.":
        "أوقفوا البرامج الأخرى على هذه الآلة، أو أضيفوا ذاكرة.",
    "The tz database {which} does not know Morocco's time since September 2026.":
        "قواعد المناطق الزمنية {which} لا تعرف توقيت المغرب منذ شتنبر 2026.",
    "Install a recent venuebox, or put a recent tzdata package (.whl) into the folder tz/ "
    "of the data directory and restart the box.":
        "ثبّتوا إصدارًا حديثًا من venuebox، أو ضعوا حزمة `tzdata` حديثة (`.whl`) في المجلد `tz/` "
        "من بيانات الجهاز وأعيدوا تشغيله.",
    "tz database {which}: Casablanca is at UTC+00.":
        "قواعد المناطق الزمنية {which}: الدار البيضاء على `UTC+00`.",
    "The clock says {told}, and the box has already written {newest}.":
        "الساعة تشير إلى {told}، والجهاز سبق أن كتب {newest}.",
    "Set the time: timedatectl set-ntp true, and check the way to the internet.":
        "اضبطوا الوقت: `timedatectl set-ntp true`، وتحققوا من الاتصال بالإنترنت.",
    "The clock ({told}) is not kept right by the network.": "الساعة ({told}) لا تُضبط عبر الشبكة.",
    "The clock ({told}) may not be kept right by the network.":
        "الساعة ({told}) ربما لا تُضبط عبر الشبكة.",
    "The clock is kept right by the network: {told}.": "الساعة تُضبط عبر الشبكة: {told}.",
    "There is no way to the internet: webhooks and letters wait, the door goes on.":
        "لا اتصال بالإنترنت: الويب هوك والرسائل تنتظر، والباب مستمر.",
    "Check the cable, the wifi and the router.": "تحققوا من السلك والواي فاي وجهاز الإنترنت.",
    "There is a way to the internet.": "الاتصال بالإنترنت متاح.",
    # conditions.py
    "The box reports nothing.": "الجهاز لا يشير إلى شيء.",
    "See the clock and the way to the internet here, endpoints by venuebox endpoint list.":
        "انظروا هنا إلى الساعة والاتصال بالإنترنت، وإلى نقاط الاستقبال بالأمر "
        "`venuebox endpoint list`.",
    # partners.py
    "There is no mail server: guests get no letters.":
        "لا يوجد خادم بريد: لا تصل أي رسالة إلى الضيوف.",
    "Fill in mail.host, mail.user, mail.password and mail.sender.":
        "املؤوا `mail.host` و`mail.user` و`mail.password` و`mail.sender`.",
    "{missing} is missing: no letter leaves.": "{missing} ناقص: لا تخرج أي رسالة.",
    "Fill it in in settings.toml and restart the box.":
        "املؤوه في `settings.toml` وأعيدوا تشغيل الجهاز.",
    "The mail password travels unencrypted.": "كلمة مرور البريد تنتقل دون تشفير.",
    "Choose starttls or tls in mail.security.": "اختاروا `starttls` أو `tls` في `mail.security`.",
    "Letters leave by {host}.": "تُرسل الرسائل عبر {host}.",
    "{server} does not take our letters: {trouble}.": "{server} لا يقبل رسائلنا: {trouble}.",
    "Check mail.* in settings.toml and the way to the internet.":
        "تحققوا من `mail.*` في `settings.toml` ومن الاتصال بالإنترنت.",
    "{server} accepts us.": "{server} يقبلنا.",
    "Webhook endpoints that take nothing ({count}): {named}.":
        "نقاط استقبال الويب هوك التي لا تقبل شيئًا ({count}): {named}.",
    "Tell the partner; if the address is blocked, see webhooks.allow_networks.":
        "أخبروا الشريك؛ وإن كان العنوان محظورًا فانظروا `webhooks.allow_networks`.",
    "Webhook endpoints: {count}, none failing.":
        "نقاط استقبال الويب هوك: {count}، ولا تفشل أي منها.",
    "{count} deliveries died in the last 7 days.":
        "الإرسالات التي فشلت نهائيًا في آخر 7 أيام: {count}.",
    "Mend it with the partner, then replay them: venuebox deliveries shows them.":
        "أصلحوا الأمر مع الشريك، ثم أعيدوا إرسالها: يعرضها الأمر `venuebox deliveries`.",
    "{pending} deliveries wait, the oldest since {oldest}.":
        "الإرسالات المنتظرة: {pending}، أقدمها منذ {oldest}.",
    "If the box runs and the internet is there, the partner does not answer.":
        "إن كان الجهاز يعمل والإنترنت متاحًا، فالشريك لا يجيب.",
    "{pending} deliveries wait, none died.":
        "الإرسالات المنتظرة: {pending}، ولم يفشل أي منها نهائيًا.",
    # certificate.py
    "The certificate ends in {days} days.": "الأيام الباقية قبل انتهاء الشهادة: {days}.",
    "Import a new one: venuebox tls import.": "استوردوا شهادة جديدة: `venuebox tls import`.",
    "Run venuebox tls renew.": "نفّذوا `venuebox tls renew`.",
    "The certificate is not for {named}.": "الشهادة لا تشمل {named}.",
    "The imported certificate is for {named}, and guests reach the box at {host}.":
        "الشهادة المستوردة تشمل {named}، والضيوف يصلون إلى الجهاز عبر {host}.",
    "Import a certificate for the address in server.app_url, or forget this one: "
    "venuebox tls forget.":
        "استوردوا شهادة لعنوان `server.app_url`، أو تخلّوا عن هذه: `venuebox tls forget`.",
    "Run venuebox tls renew; if nothing changes, venuebox tls renew --authority, "
    "then have each phone trust the box anew: /trust.":
        "نفّذوا `venuebox tls renew`؛ وإن لم يتغيّر شيء فنفّذوا `venuebox tls renew --authority`، "
        "ثم ليثق كل هاتف بالجهاز من جديد: `/trust`.",
    "Nobody answers https at {where}.": "لا أحد يجيب عبر https على {where}.",
    "Restart the box; if the port is taken, change server.tls_port.":
        "أعيدوا تشغيل الجهاز؛ وإن كان المنفذ مشغولًا فغيّروا `server.tls_port`.",
    "{where} shows another certificate than the box's.": "{where} يعرض شهادة غير شهادة الجهاز.",
    "Restart the box.": "أعيدوا تشغيل الجهاز.",
    "https answers at {where}.": "يجيب https على {where}.",
}  # fmt: skip


def in_arabic(english: str, blanks: Mapping[str, object]) -> str:
    """The Arabic of that sentence, its blanks filled; KeyError where it has none."""
    return fill(ARABIC[english], blanks)


def fill(arabic: str, blanks: Mapping[str, object]) -> str:
    """A sentence of Arabic with its blanks filled, what is Latin in it isolated."""
    filled = {name: apart(str(value)) for name, value in blanks.items()}
    return _CODE.sub(rf"{LATIN}\1{END}", arabic).format(**filled)


def apart(text: str) -> str:
    """`text` as an isolate: it neither turns the sentence around it nor leaves it turned."""
    return f"{FREE}{_TURNING.sub('', text)}{END}"
