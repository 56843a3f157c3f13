"""`[[readers]]`: what is read, and one sentence for each mistake."""

import tomllib

import pytest

from appliance.errors import Trouble
from appliance.settings import read_settings
from appliance.settings_file import settings_example
from appliance.settings_readers import parse_readers

SERIAL = {"kind": "serial", "device": "/dev/ttyACM0", "terminal": "Porte 1"}
TCP = {"kind": "tcp", "port": 7070, "terminal": "Porte 1"}


def test_the_readers_of_the_file_are_among_the_settings(tmp_path):
    file = tmp_path / "settings.toml"
    file.write_text(
        r"""
        [[readers]]
        kind = "serial"
        device = "/dev/serial/by-id/usb-scanner"
        terminal = "Porte 1"
        answer = { green = '\xA0\x01\x01\xA2\p\xA0\x01\x00\xA1', red = "\u0007" }
        [[readers]]
        kind = "tcp"
        port = 7070
        terminal = "Porte 2"
        environment = "test"
        """,
        "utf-8",
    )

    serial, tcp = read_settings(file, {}).readers

    assert (serial.baud, serial.environment) == (9600, "live")
    assert serial.answer == {"green": (b"\xa0\x01\x01\xa2", b"\xa0\x01\x00\xa1"), "red": (b"\x07",)}
    assert (tcp.place, tcp.environment) == ("127.0.0.1:7070", "test")


def test_the_example_of_the_settings_file_is_a_good_reader():
    text = settings_example().partition("# [[readers]]")[2]
    lines = [line.removeprefix("# ") for line in text.splitlines()]

    [reader] = parse_readers(tomllib.loads("\n".join(["[[readers]]", *lines]))["readers"])

    assert reader.answer["green"] == (b"\xa0\x01\x01\xa2", b"\xa0\x01\x00\xa1")


def test_a_bridge_is_the_terminal_of_all_its_readers():
    [reader] = parse_readers([{"kind": "tcp", "port": 7070}], on_a_bridge=True)

    assert reader.terminal == ""
    with pytest.raises(Trouble, match=r"unknown setting readers\[1\].terminal"):
        parse_readers([TCP], on_a_bridge=True)


@pytest.mark.parametrize(
    ("readers", "words"),
    [
        ({"kind": "tcp"}, ["[[readers]]"]),
        ([1], ["[[readers]]"]),
        ([{}], ["readers[1].kind is None", "serial, evdev, tcp"]),
        ([SERIAL | {"kind": "usb"}], ["readers[1].kind", "'usb'", "serial, evdev, tcp"]),
        ([TCP, SERIAL | {"devise": "x"}], ["unknown setting readers[2].devise", "device"]),
        ([{"kind": "serial", "terminal": "P"}], ["readers[1].device is missing", "/dev/serial"]),
        ([{"kind": "tcp", "port": 1}], ["readers[1].terminal is missing"]),
        ([{"kind": "tcp", "terminal": "P"}], ["readers[1].port is missing"]),
        ([SERIAL | {"device": "ttyACM0"}], ["readers[1].device", "'ttyACM0'", "a path"]),
        ([SERIAL | {"baud": 9601}], ["readers[1].baud", "9601", "9600"]),
        ([SERIAL | {"repeat_answer": 1}], ["readers[1].repeat_answer is 1", "true or false"]),
        ([SERIAL | {"baud": "9600"}], ["readers[1].baud", "'9600'"]),
        ([SERIAL | {"terminal": " "}], ["readers[1].terminal", "1 to 200"]),
        ([SERIAL | {"environment": "prod"}], ["readers[1].environment", "live or test"]),
        ([TCP | {"port": 0}], ["readers[1].port", "1 to 65535"]),
        ([TCP | {"port": True}], ["readers[1].port", "1 to 65535"]),
        ([TCP | {"device": "/dev/x"}], ["unknown setting readers[1].device"]),
        ([TCP | {"answer": "x"}], ["readers[1].answer", "green"]),
        ([TCP | {"answer": {"blue": "x"}}], ["readers[1].answer.blue", "green, amber, red, grey"]),
        ([TCP | {"answer": {"red": 7}}], ["readers[1].answer.red is 7", "text"]),
        ([TCP | {"answer": {"red": r"\q"}}], ["readers[1].answer.red", r"\xHH"]),
        ([TCP | {"answer": {"red": "\\"}}], ["readers[1].answer.red", r"\xHH"]),
        ([TCP | {"answer": {"red": r"\xA"}}], ["readers[1].answer.red", r"\xHH"]),
        ([TCP | {"answer": {"red": "x" * 300}}], ["readers[1].answer.red", "256"]),
        ([TCP, TCP], ["two readers use 127.0.0.1:7070"]),
        ([{"kind": "evdev", "device": "/dev/input/event3", "terminal": "P", "answer": {}}],
         ["readers[1].answer_device is missing", "a keyboard cannot be answered"]),
    ],
)  # fmt: skip
def test_a_mistake_is_one_sentence_that_names_the_reader_and_what_is_allowed(readers, words):
    with pytest.raises(Trouble) as trouble:
        parse_readers(readers)

    sentence = str(trouble.value)
    assert all(word in sentence for word in words), sentence
    assert "\n" not in sentence
