import subprocess
import sys

import pytest

from web.main import main, make_parser

pytestmark = pytest.mark.process


def test_a_reader_that_has_seen_enough_is_no_accident():
    pipe = f"{sys.executable} -m web.main version | true"
    child = subprocess.run(["bash", "-c", pipe], capture_output=True, text=True, check=True)
    assert child.stderr == ""


def test_what_nobody_thought_of_is_one_sentence_without_a_traceback(capsys, monkeypatch):
    def fail(*_):
        raise RuntimeError("first line\nsecond line")

    monkeypatch.setattr("web.main.make_parser", lambda **_: _parser_that(fail))

    assert main(["version"], {}) == 1
    assert capsys.readouterr().err == (
        "venuebox: unexpected RuntimeError: first line second line\n"
    )


def _parser_that(run):
    parser = make_parser()
    parser.set_defaults(run=run)
    for action in parser._subparsers._group_actions:
        for command in action.choices.values():
            command.set_defaults(run=run)
    return parser


def test_commands_other_than_serve_do_not_load_the_web(tmp_path):
    code = (
        "import sys; from web.main import main; main(['version'], {});"
        "assert 'aiohttp' not in sys.modules, 'aiohttp was loaded'"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
