"""The portal's routes, with their methods, paths, minimum roles and handlers."""

from dataclasses import replace
from functools import partial

from appliance.door.parties import party_left, party_stays
from appliance.privacy import erase_guest
from appliance.reservations.change import accept
from appliance.reservations.leave import mark_no_show
from appliance.staff.accounts import disable_staff, enable_staff, end_sessions, unlock
from web.portal import (
    account,
    address,
    box,
    callers,
    deliveries,
    door,
    evening,
    figures,
    integrations,
    reservation,
    reservation_form,
    reservation_list,
    sign_in,
    staff,
    update,
    venue,
)
from web.portal.guard import runs
from web.portal.navigation import PortalRoute

_get, _post = partial(PortalRoute, "GET"), partial(PortalRoute, "POST")
_get_live, _post_live = partial(_get, live_only=True), partial(_post, live_only=True)

_ACCOUNT = "/portal/account"
_PERSON = "/portal/people/{id}"
_RESERVATION = "/portal/reservations/{id}"
_TABLE, _SLOT = "/portal/venue/tables/{id}", "/portal/venue/slots/{id}"
_TERMINAL = "/portal/door/terminals/{id}"
_ROOM = "/portal/integrations"
_KEY, _ENDPOINTS = f"{_ROOM}/keys/{{id}}", f"{_ROOM}/endpoints"
_ENDPOINT = f"{_ENDPOINTS}/{{id}}"
_DELIVERY = f"{_ROOM}/deliveries/{{id}}"

_ROUTES: tuple[PortalRoute, ...] = (
    _get("/portal", "door", sign_in.go_home),
    _get("/portal/", "door", sign_in.go_home),
    _post_live("/portal/sign-out", "door", sign_in.sign_out_browser),
    _post_live("/portal/language", "door", sign_in.choose_language),
    _get("/portal/tonight", "door", evening.show_board),
    _get("/portal/tonight/rows", "door", evening.show_rows),
    _get("/portal/tonight/sheet", "door", evening.show_sheet),
    _get("/portal/tonight/figures", "host", figures.show_figures),
    _post("/portal/tonight/walk-in", "host", reservation.seat),
    _get("/portal/reservations", "host", reservation_list.show_list),
    _get("/portal/reservations/export.csv", "manager", reservation_list.export_list),
    _get("/portal/reservations/callers", "host", callers.show_callers),
    _get("/portal/reservations/new", "host", reservation_form.show_new),
    _post("/portal/reservations/new", "host", reservation_form.make_new),
    _get(_RESERVATION, "door", reservation.show_reservation),
    _post(f"{_RESERVATION}/check-in", "door", reservation.check_in_one),
    _post(f"{_RESERVATION}/undo", "door", reservation.undo_one),
    _post(f"{_RESERVATION}/amend", "host", reservation.amend),
    _post(f"{_RESERVATION}/change", "host", reservation.change_one),
    _post(f"{_RESERVATION}/move", "host", reservation.move),
    _post(f"{_RESERVATION}/late", "host", reservation.late),
    _post(f"{_RESERVATION}/left", "host", reservation.form_without_fields(party_left)),
    _post(f"{_RESERVATION}/no-show", "host", reservation.form_without_fields(mark_no_show)),
    _post(f"{_RESERVATION}/take-back", "host", reservation.form_without_fields(party_stays)),
    _post(f"{_RESERVATION}/send-pass", "host", reservation.send_pass_to),
    _post(f"{_RESERVATION}/new-code", "host", reservation.new_code),
    _post(f"{_RESERVATION}/cancel", "host", reservation.cancel_one),
    _post(f"{_RESERVATION}/accept", "host", reservation.form_without_fields(accept)),
    _post(f"{_RESERVATION}/decline", "host", reservation.decline_one),
    _post(f"{_RESERVATION}/payment", "host", reservation.pay),
    _post(f"{_RESERVATION}/void", "host", reservation.void),
    # Erases the guest's data (law 09-08). The reservation itself remains and keeps its table.
    _post(f"{_RESERVATION}/erase", "manager", reservation.form_without_fields(erase_guest)),
    _get(f"{_RESERVATION}/held.json", "manager", reservation.export_one),
    _get(_ROOM, "manager", integrations.show_overview),
    _get(f"{_ROOM}/warnings", "manager", integrations.show_warnings),
    _post(f"{_ROOM}/keys", "manager", integrations.create_key, page=integrations.new_key),
    _get(f"{_ROOM}/keys/new", "manager", integrations.new_key),
    _get(_KEY, "manager", integrations.show_key),
    _post(f"{_KEY}/rotate", "manager", integrations.rotate_one),
    _post(f"{_KEY}/revoke", "manager", integrations.revoke_one),
    _post(_ENDPOINTS, "manager", integrations.create_endpoint, page=integrations.new_endpoint),
    _get(f"{_ENDPOINTS}/new", "manager", integrations.new_endpoint),
    _get(_ENDPOINT, "manager", integrations.show_endpoint),
    _post(f"{_ENDPOINT}/activate", "manager", integrations.activate_one),
    _post(f"{_ENDPOINT}/deactivate", "manager", integrations.deactivate_one),
    _post(f"{_ENDPOINT}/events", "manager", integrations.choose_for_one),
    _post(f"{_ENDPOINT}/references", "manager", integrations.restrict_one),
    _post(f"{_ENDPOINT}/roll", "manager", integrations.roll_one),
    _post(f"{_ENDPOINT}/revoke-old-secret", "manager", integrations.revoke_old),
    _post(f"{_ENDPOINT}/trust", "manager", integrations.trust_one),
    _post(f"{_ENDPOINT}/test", "manager", integrations.send_test),
    _get(f"{_ROOM}/deliveries", "manager", deliveries.show_deliveries),
    _get(_DELIVERY, "manager", deliveries.show_delivery),
    _post(f"{_DELIVERY}/replay", "manager", deliveries.replay_one),
    _post(f"{_ENDPOINT}/replay", "manager", deliveries.replay_dead),
    _get_live("/portal/venue", "manager", venue.show_tables),
    _post_live(
        "/portal/venue/preview", "manager", venue.preview, takes_files=True, page=venue.show_list
    ),
    _post_live(
        "/portal/venue/tables", "manager", venue.add, takes_files=True, page=venue.show_list
    ),
    _post_live("/portal/venue/move", "manager", venue.move),
    _post_live("/portal/venue/order", "manager", venue.put_in_order),
    _get_live(_TABLE, "manager", venue.show_table),
    _post_live(_TABLE, "manager", venue.edit),
    _post_live(f"{_TABLE}/remove", "manager", venue.remove),
    _get_live("/portal/venue/slots", "manager", venue.show_slots),
    _post_live("/portal/venue/slots", "manager", venue.add_one_slot),
    _get_live(_SLOT, "manager", venue.show_slot),
    _post_live(_SLOT, "manager", venue.edit_one_slot),
    _post_live(f"{_SLOT}/remove", "manager", venue.remove_one_slot),
    _get_live("/portal/venue/closings", "manager", venue.show_closings),
    _post_live("/portal/venue/closings", "manager", venue.close),
    _post_live("/portal/venue/closings/{id}/remove", "manager", venue.reopen),
    _get_live("/portal/venue/rules", "manager", venue.show_rules),
    _post_live("/portal/venue/rules", "manager", venue.save_rules),
    _get_live("/portal/door", "manager", door.show_door),
    _post_live("/portal/door/pair", "manager", door.offer),
    _get_live("/portal/door/pairings/{mark}", "manager", door.show_state),
    _post_live("/portal/door/issue", "manager", door.issue),
    _get_live(_TERMINAL, "manager", door.show_terminal),
    _post_live(_TERMINAL, "manager", door.edit),
    _post_live(f"{_TERMINAL}/revoke", "manager", door.revoke),
    _post_live("/portal/door/conflicts/{id}/acknowledge", "manager", door.acknowledge),
    _get_live("/portal/door/log", "manager", door.show_log),
    _get_live("/portal/door/log/export", "manager", door.export_log),
    _get_live("/portal/door/keys", "manager", door.show_keys),
    _post_live("/portal/door/keys/rotate", "manager", door.rotate),
    _post_live("/portal/door/keys/leaked", "owner", door.replace_leaked),
    _get_live(_ACCOUNT, "door", account.show_account),
    _post_live(f"{_ACCOUNT}/password", "door", account.set_new_password),
    _post_live(f"{_ACCOUNT}/second-step", "door", account.offer),
    _post_live(f"{_ACCOUNT}/second-step/confirm", "door", account.confirm),
    _post_live(f"{_ACCOUNT}/second-step/remove", "door", account.remove),
    _post_live(f"{_ACCOUNT}/sessions/end-others", "door", account.end_others),
    _post_live(f"{_ACCOUNT}/sessions/{{id}}/end", "door", account.end_one),
    _get_live("/portal/people", "owner", staff.show_people),
    _post_live("/portal/people", "owner", staff.invite),
    _get_live("/portal/people/log", "owner", staff.show_log),
    _post_live(f"{_PERSON}/link", "owner", staff.make_link),
    _post_live(f"{_PERSON}/role", "owner", staff.set_role),
    _post_live(f"{_PERSON}/disable", "owner", runs(disable_staff, "/people")),
    _post_live(f"{_PERSON}/enable", "owner", runs(enable_staff, "/people")),
    _post_live(f"{_PERSON}/unlock", "owner", runs(unlock, "/people")),
    _post_live(f"{_PERSON}/second-step/remove", "owner", staff.remove_two_factor_of),
    _post_live(f"{_PERSON}/sign-out", "owner", runs(end_sessions, "/people")),
    _get_live("/portal/box", "manager", box.show_box),
    _get_live("/portal/box/backup", "manager", box.show_backups),
    _post_live("/portal/box/backup", "manager", box.back_up, page=box.show_box),
    _get_live("/portal/box/update", "manager", update.show_update),
    _post_live("/portal/box/update", "owner", update.install, page=box.show_box),
    _post_live("/portal/box/clock", "owner", box.confirm),
    _post_live("/portal/box/mail", "owner", box.save_mail),
    _post_live("/portal/box/recovery-kit", "owner", box.show_recovery_kit),
    _get_live("/portal/box/address", "owner", address.show_address),
    _post_live("/portal/box/address/test", "owner", address.check_address),
    _post_live("/portal/box/address/relay", "owner", address.join),
    _post_live("/portal/box/address/forward", "owner", address.forward),
    _post_live("/portal/box/address/proxy", "owner", address.use_proxy),
    _post_live("/portal/box/test-letter", "manager", box.send_test_email),
    _post_live("/portal/box/setup-done", "owner", box.close_first_run),
)
_PAGES = {route.path: route.handler for route in _ROUTES if route.method == "GET"}


def _with_page(route: PortalRoute) -> PortalRoute:
    """Return a form's route with its page, which by default is the nearest one above its path."""
    above = route.path
    while above not in _PAGES:
        above = above.rpartition("/")[0]
    return replace(route, page=route.page or _PAGES[above])


PORTAL_ROUTES = tuple(map(_with_page, _ROUTES))
