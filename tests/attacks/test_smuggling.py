"""Request smuggling (S19): of two requests that hide in each other, the hidden one is never run."""

import re
import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from tests.attacks.smuggling import corpus, well_framed
from tests.web.processes import Serving
from tests.web.test_connection import new_box

HIDDEN = b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
CORPUS = dict(corpus())
WELL_FRAMED = dict(well_framed())


@pytest.fixture(scope="module")
def serving(tmp_path_factory):
    data = new_box(tmp_path_factory.mktemp("smuggling"))
    with Serving("--data", str(data), "--host", "127.0.0.1", "--port", "0") as found:
        yield found


def answers(port, raw, patience=1.5):
    """The status lines that come back until the box hangs up, or says nothing more."""
    received = b""
    with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
        connection.settimeout(patience)
        with suppress(TimeoutError, ConnectionError):
            connection.sendall(raw)
            while chunk := connection.recv(65536):
                received += chunk
                connection.settimeout(1.5)
    return [int(status) for status in re.findall(rb"HTTP/1\.[01] (\d{3})", received)]


def test_the_hidden_request_alone_is_a_good_one(serving):
    assert answers(serving.port, HIDDEN, 20) == [200]


def test_the_corpus_has_over_a_hundred_of_them():
    assert len(CORPUS) >= 100


@pytest.mark.proves("G13", "S19", "V4")
@pytest.mark.parametrize("name", CORPUS)
def test_no_hidden_request_is_run(serving, name):
    found = answers(serving.port, CORPUS[name] + HIDDEN)

    assert 200 not in found
    assert len(found) <= 1


@pytest.fixture(scope="module")
def refusals(serving):
    """What each is answered: all at once, for after each it takes a while to know that was all."""
    with ThreadPoolExecutor(len(WELL_FRAMED)) as pool:
        found = pool.map(lambda raw: answers(serving.port, raw, 20), WELL_FRAMED.values())
        return dict(zip(WELL_FRAMED, found, strict=True))


@pytest.mark.proves("S19")
@pytest.mark.parametrize("name", WELL_FRAMED)
def test_what_is_odd_but_plainly_framed_is_refused(refusals, name):
    found = refusals[name]

    assert len(found) == 1
    assert 400 <= found[0] < 500
