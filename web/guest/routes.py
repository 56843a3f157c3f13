"""The guest's addresses. The composition root adds them once plain and once under `/test`."""

from web.guest.access import access_page, calendar_file
from web.guest.claim import claim, claim_page

# A token takes whatever follows: a link that was mangled on its way gets the guest's own page.
GUEST_ROUTES = (
    ("GET", "/access/{token}/calendar.ics", calendar_file),
    ("GET", "/access/{token:.*}", access_page),
    ("GET", "/claim-guest/{token:.*}", claim_page),
    ("POST", "/claim-guest/{token:.*}", claim),
)
