"""Files saved by editors are read if nothing is lost. Otherwise the line is named."""

import codecs

import pytest

from appliance.core.edited_files import decode_edited, parse_edited
from appliance.core.errors import OperatorError
from appliance.core.settings import read_settings
from terminal_bridge.agent.run import read_bridge_settings

GOOD = '[server]\nport = 9000\n\n[mail]\nhost = "smtp.riad.example"\nsender = "été@riad.example"\n'


def read(raw):
    return parse_edited(decode_edited(raw, "settings.toml"), "settings.toml")


@pytest.mark.parametrize("mark", [b"", codecs.BOM_UTF8])
@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_a_byte_order_mark_and_windows_line_ends_are_ignored(tmp_path, mark, ends):
    file = tmp_path / "settings.toml"
    file.write_bytes(mark + GOOD.replace("\n", ends).encode())

    assert read_settings(file, {}).server.port == 9000


@pytest.mark.parametrize(
    ("raw", "named"),
    [
        (GOOD.encode("utf-16"), "UTF-16"),
        (GOOD.encode("utf-16-be"), "UTF-16"),
        (GOOD.encode("cp1252"), "line 6 contains é"),
        (GOOD.replace("9000", "“9000”").encode(), "Line 2 contains “"),
        (GOOD.replace('"smtp', "’smtp").encode(), "Line 5 contains ’"),
        (GOOD.replace('example"\ns', "example”\ns").encode(), "Line 5 contains ”"),
        (GOOD.replace("port =", "port\u00a0=").encode(), "Line 2 contains an invisible sign (no-b"),
        (GOOD.replace("host", "host\u200b").encode(), "Line 5 contains an invisible sign (zero"),
        (GOOD.replace("[mail]", "[mail]\u202f").encode(), "Line 4 contains an invisible sign"),
        ((GOOD + "[server]\n").encode(), "has this section already"),
    ],
)  # fmt: skip
def test_an_invalid_character_from_an_editor_is_reported_with_its_line(raw, named):
    with pytest.raises(OperatorError) as caught:
        read(raw)

    assert str(caught.value).startswith("settings.toml ")
    assert named in str(caught.value)


def test_the_settings_of_a_bridge_are_read_like_edited_files(tmp_path):
    file = tmp_path / "edited.toml"
    file.write_bytes("\nname = “Riad”\n".encode())

    with pytest.raises(OperatorError, match="Line 2 contains “"):
        read_bridge_settings(file)
