"""What is a code in a stream of bytes, and what is not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from terminal_bridge.readers.lines import CODE_MAX, Lines


@pytest.mark.parametrize("end", [b"\r", b"\n", b"\t", b"\r\n", b"\r\n\r\n"])
def test_a_code_ends_with_a_terminator(end):
    assert Lines().feed(b"SVC-7K2M" + end + b"SVC-AB") == ["SVC-7K2M"]


def test_a_code_that_comes_in_pieces_is_one():
    lines = Lines()

    assert [lines.feed(bytes([byte])) for byte in b"AB\n"] == [[], [], ["AB"]]


def test_a_pause_ends_a_code_and_forgets_a_stray_key():
    lines = Lines()

    lines.feed(b"SVC-7K2M")
    assert lines.is_waiting
    assert lines.pause() == ["SVC-7K2M"]
    lines.feed(b"x")
    assert lines.pause() == []
    assert not lines.is_waiting


def test_the_frame_that_some_scanners_put_around_a_code_is_not_of_it():
    assert Lines().feed(b"\x00\x02SVC-7K2M\x03\r") == ["SVC-7K2M"]


@pytest.mark.parametrize("raw", [b"\xff\xfeSVC\r", b"\x1bSVC\r", b"a" * (CODE_MAX + 1) + b"\r"])
def test_garbage_and_what_is_too_long_is_dropped_with_a_reason_and_the_next_code_is_read(raw):
    lines = Lines()

    assert lines.feed(raw) == []
    assert lines.dropped
    assert lines.feed(b"SVC-7K2M\r") == ["SVC-7K2M"]
    assert lines.dropped == ""


def test_the_longest_code_is_read():
    assert Lines().feed(b"a" * CODE_MAX + b"\r") == ["a" * CODE_MAX]


def test_what_never_ends_takes_no_room():
    lines = Lines()

    for _ in range(1000):
        assert lines.feed(b"a" * 4096) == []

    assert len(lines._bytes) <= CODE_MAX
    assert lines.pause() == []
    assert lines.dropped


@given(st.lists(st.binary(max_size=300)))
def test_whatever_comes_every_code_is_printable_and_within_its_limits(pieces):
    lines = Lines()

    codes = [code for piece in pieces for code in lines.feed(piece)] + lines.pause()

    assert all(code.isprintable() and code == code.strip() for code in codes)
    assert all(1 <= len(code) <= CODE_MAX for code in codes)
