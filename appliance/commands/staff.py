"""`venuebox staff create|list|reset|disable|…`: staff accounts and their one-time links.

Accounts belong to the venue, so they are stored in the live database only.
"""

import argparse

from appliance.commands import console as cli
from appliance.core.errors import OperatorError
from appliance.database.connection import Reader
from appliance.environment import public_base, staff_base
from appliance.staff.accounts import Invitation, create_staff, disable_staff, invite_again
from appliance.staff.model import ROLES, StaffMember, find_by_name, list_staff
from appliance.staff.two_factor import list_two_factor, remove_two_factor


def add(commands: cli.Commands) -> None:
    """Add the commands to the command line."""
    group = cli.add_group(commands, "staff", "staff accounts")
    parser = cli.add_command(group, "create", create, "create an account; its link works once",
                             "--data", "--json", name_help="the staff member's name")  # fmt: skip
    parser.add_argument("--role", choices=ROLES, required=True, help="role")
    cli.add_command(group, "list", show, "list accounts and roles", "--data", "--json")
    for name, run, meaning, *options in (
        ("reset", reset, "print a new link to set a password", "--json"),
        ("disable", disable, "disable an account"),
        ("remove-second-step", remove_step, "turn off two-factor sign-in (lost phone)"),
    ):
        parser = cli.add_command(group, name, run, meaning, "--data", *options)
        parser.add_argument("name", metavar="NAME", help="the staff member's name")


def create(arguments: argparse.Namespace, console: cli.Console) -> int:
    """Create an account and print its one-time link."""
    with console.transaction(console.directory(arguments), "live") as tx:
        invitation = create_staff(tx, arguments.name, arguments.role)
    return _show_link(arguments, console, invitation)


def show(arguments: argparse.Namespace, console: cli.Console) -> int:
    """Print one line for each account, with disabled accounts last."""
    with console.reading(console.directory(arguments), "live") as reader:
        people, with_code = list_staff(reader), list_two_factor(reader)
    rows = []
    for person in people:
        described = cli.describe(
            person, "id", "name", "role", "created_at", "disabled_at",
            has_password=bool(person.has_password), has_second_step=person.id in with_code,
        )  # fmt: skip
        columns = [person.id, f"{person.role:7}"]
        columns += [f"disabled {described['disabledAt']}"] if person.disabled_at else []
        columns += [] if person.has_password else ["no password yet"]
        columns += ["two-step"] if person.id in with_code else []
        rows.append((described, [*columns, person.name]))
    return cli.print_rows(arguments, rows)


def reset(arguments: argparse.Namespace, console: cli.Console) -> int:
    """Print a new one-time link. The old password works until the link is used."""
    with console.transaction(console.directory(arguments), "live") as tx:
        invitation = invite_again(tx, _find(tx, arguments.name).id)
    return _show_link(arguments, console, invitation)


def disable(arguments: argparse.Namespace, console: cli.Console) -> int:
    """Disable the account. Its next request is rejected."""
    with console.transaction(console.directory(arguments), "live") as tx:
        person = _find(tx, arguments.name)
        disable_staff(tx, person.id)
    print(f"{person.name} is signed out everywhere and can no longer sign in")
    return 0


def remove_step(arguments: argparse.Namespace, console: cli.Console) -> int:
    """Turn off two-factor sign-in. The next sign-in needs only the password."""
    with console.transaction(console.directory(arguments), "live") as tx:
        person = _find(tx, arguments.name)
        had_one = remove_two_factor(tx, person.id)
    what = "now signs in with the password only" if had_one else "had no two-factor sign-in"
    print(f"{person.name} {what}")
    return 0


def _find(reader: Reader, name: str) -> StaffMember:
    if person := find_by_name(reader, name):
        return person
    raise OperatorError(
        f"there is no active account named {name!r}. Run venuebox staff list to see the accounts."
    )


def _show_link(arguments: argparse.Namespace, console: cli.Console, invitation: Invitation) -> int:
    directory = console.directory(arguments)
    addresses = console.links(directory, "live"), console.settings_in_force(directory).server
    path = f"/portal/welcome#{invitation.secret}"
    url, outside = f"{staff_base(*addresses)}{path}", public_base(*addresses)
    text = f"{url}\nThis link works once, within 72 hours. Give it to {arguments.name} only."
    if outside:
        text += f"\nFrom outside the venue: {outside}{path}"
    return cli.print_answer(arguments, {"id": invitation.staff_id, "signInUrl": url}, text)
