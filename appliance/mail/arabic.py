"""Letters in Arabic, with the month names and digits of Morocco."""

from appliance.mail.words import KindWords, Words

ARABIC = Words(
    language="ar",
    locale="ar_MA",
    direction="rtl",
    colon=": ",
    greeting="مرحبا {name}،",
    greeting_without_name="مرحبا،",
    evening="الأمسية",
    table="الطاولة",
    guests="عدد الأشخاص",
    code="رمزكم",
    during="{day}، من {start} إلى {end}",
    whole_evening="{day}، طوال الأمسية",
    party={
        "zero": "{count} شخص",
        "one": "شخص واحد",
        "two": "شخصان",
        "few": "{count} أشخاص",
        "many": "{count} شخصا",
        "other": "{count} شخص",
    },
    at_the_door="عند المدخل، أظهروا هذا الرمز المربع أو اذكروا رمزكم.",
    picture="الرمز المربع للدخول. إذا لم يظهر، فاذكروا الرمز {code} عند المدخل.",
    button="فتح بطاقتي",
    link="بطاقتكم، المحدثة دائما، موجودة هنا:",
    footer="رسالة تلقائية من {venue} بخصوص حجزكم. "
    "بطاقتكم شخصية: لا ترسلوا هذه الرسالة إلا إلى ضيوفكم.",
    kinds={
        "confirmation": KindWords(
            subject="حجزكم: {venue}، {day}",
            heading="تم تأكيد حجزكم",
            intro="يسعدنا استقبالكم في {venue}. إليكم كل ما تحتاجونه لهذه الأمسية.",
        ),
    },
)
