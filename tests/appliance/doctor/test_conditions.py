import pytest

from appliance.webhooks import conditions as noted

ALL = [value for name, value in vars(noted).items() if name.isupper() and isinstance(value, str)]


def note(ward, name):
    ward.write("INSERT INTO condition (name, subject, since, detail)"
               " VALUES (:name, '', 0, 'it is so.')", name=name)  # fmt: skip


@pytest.mark.parametrize("name", ALL)
def test_what_the_box_has_noted_is_told_in_both_languages(ward, name):
    note(ward, name)

    found = ward.find("conditions")

    assert found.status == ("fail" if name == noted.UNWRITTEN else "warn")
    assert found.finding.en == "The box reports: it is so."
    assert name not in found.finding.fr


def test_what_a_process_noted_about_itself_is_past_when_it_is_off(ward):
    note(ward, noted.CLOCK_HELD)
    (ward.root / "poke").unlink()

    assert ward.status("conditions") == "ok"

    note(ward, noted.ENDPOINT_FAILING)
    assert ward.status("conditions") == "warn"
