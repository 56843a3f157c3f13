"""The guest routes. The composition root adds them for live and, under `/test`, for test."""

from web.guest.access import access_page, calendar_file, pass_picture, service_worker
from web.guest.book import booked_page, booking_page, send_booking
from web.guest.cancel import cancel, cancel_page
from web.guest.claim import claim, claim_page
from web.guest.my_reservations import (
    correct_mine,
    erase_mine,
    forget_all,
    my_data,
    my_reservation,
    my_reservations,
)

# A token matches any text, so that a damaged link gets the guest's error page.
GUEST_ROUTES = (
    ("GET", "/access/service-worker.js", service_worker),
    ("GET", "/access/{token}/calendar.ics", calendar_file),
    ("GET", "/access/{token}/pass.png", pass_picture),
    ("GET", "/access/{token:.*}", access_page),
    ("GET", "/claim-guest/{token}/cancel", cancel_page),
    ("POST", "/claim-guest/{token}/cancel", cancel),
    ("GET", "/claim-guest/{token:.*}", claim_page),
    ("POST", "/claim-guest/{token:.*}", claim),
    ("GET", "/me", my_reservations),
    ("POST", "/me/forget", forget_all),
    ("GET", "/me/{id}", my_reservation),
    ("POST", "/me/{id}", correct_mine),
    ("GET", "/me/{id}/cancel", cancel_page),
    ("POST", "/me/{id}/cancel", cancel),
    ("GET", "/me/{id}/data.json", my_data),
    ("POST", "/me/{id}/erasure", erase_mine),
    ("GET", "/book", booking_page),
    ("POST", "/book", send_booking),
    ("GET", "/book/{token}", booked_page),
)
