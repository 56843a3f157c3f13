"""The demo where something else has port 8080 already: another one is a word away."""

import os
import shutil
import socket
import subprocess

from tests.readme import ROOT
from web.main import main


def test_a_taken_port_says_how_to_choose_another(capsys):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        assert main(["serve", "--demo", "--port", port], {}) == 1

    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "choose another with --port, or with make run PORT=8090" in said


if shutil.which("make") is not None:

    def would_run(*words, **environ):
        done = subprocess.run(
            ["make", "--dry-run", "--no-print-directory", "run", *words],
            cwd=ROOT, env=os.environ | environ, capture_output=True, text=True, check=True,
        )  # fmt: skip
        return done.stdout.splitlines()[-1].rstrip()

    def test_make_run_takes_a_port_from_its_command_line_alone():
        assert would_run("PORT=8090").endswith("venuebox serve --demo --port 8090")
        assert would_run(PORT="8090").endswith("venuebox serve --demo")
