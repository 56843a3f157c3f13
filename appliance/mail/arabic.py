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
    address="العنوان",
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
    see_button="عرض حجزي",
    see_link="حجزكم، المحدث دائما، موجود هنا:",
    minimum_spend="الحد الأدنى للطاولة",
    received="المبلغ المستلم",
    undo="لا يمكنكم الحضور؟ ألغوا الحجز هنا:",
    stop="للتوقف عن تلقي التذكيرات:",
    calendar_title="طاولة في {venue}",
    footer="رسالة تلقائية من {venue} بخصوص حجزكم.",
    personal="بطاقتكم شخصية: لا ترسلوا هذه الرسالة إلا إلى ضيوفكم.",
    kinds={
        "confirmation": KindWords(
            subject="حجزكم: {venue}، {day}",
            heading="تم تأكيد حجزكم",
            intro="يسعدنا استقبالكم في {venue}. إليكم كل ما تحتاجونه لهذه الأمسية.",
        ),
        "requested": KindWords(
            subject="طلبكم: {venue}، {day}",
            heading="وصلنا طلبكم",
            intro="سيجيبكم {venue} قريبا في رسالة أخرى. وإلى ذلك الحين، الطاولة محفوظة لكم.",
        ),
        "accepted": KindWords(
            subject="تم قبول الطلب: {venue}، {day}",
            heading="تم قبول طلبكم",
            intro="يسعدنا استقبالكم في {venue}. إليكم كل ما تحتاجونه لهذه الأمسية.",
        ),
        "declined": KindWords(
            subject="تعذر قبول الطلب: {venue}، {day}",
            heading="تعذر قبول طلبكم",
            intro="نأسف لذلك: لم يبق مكان في {venue} تلك الأمسية. قد تناسبكم أمسية أخرى.",
        ),
        "cancelled": KindWords(
            subject="تم إلغاء الحجز: {venue}، {day}",
            heading="تم إلغاء حجزكم",
            intro="أصبحت الطاولة متاحة من جديد ولم تعد بطاقتكم صالحة. يسعدنا استقبالكم في "
            "{venue} في أمسية أخرى.",
        ),
        "reminder": KindWords(
            subject="تذكير: {venue}، {day}",
            heading="إلى لقاء قريب",
            intro="موعدكم قريب في {venue}. إليكم من جديد كل ما تحتاجونه لهذه الأمسية.",
        ),
        "payment_due": KindWords(
            subject="في انتظار الأداء: {venue}، {day}",
            heading="بقي أداء المبلغ",
            intro="الطاولة محفوظة لكم. سيتم تأكيد الحجز بمجرد أن يتوصل {venue} بالمبلغ.",
        ),
    },
)
