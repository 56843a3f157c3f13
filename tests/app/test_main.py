import subprocess
import sys

import pytest

from web.main import main, make_parser

pytestmark = pytest.mark.process


def test_a_closed_output_pipe_is_not_reported_as_an_error():
    pipe = f"{sys.executable} -m web.main version | true"
    child = subprocess.run(["bash", "-c", pipe], capture_output=True, text=True, check=True)
    assert child.stderr == ""


def test_an_unexpected_exception_is_one_sentence_without_a_traceback(capsys, monkeypatch):
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


def test_only_the_serve_command_imports_the_web_package(tmp_path):
    code = (
        "import sys; from web.main import main; main(['version'], {});"
        "assert 'aiohttp' not in sys.modules, 'aiohttp was loaded'"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
