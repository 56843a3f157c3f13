"""Whoever is not the box's user is told who is, and not what Python makes of it."""

import contextlib
import importlib
import os
import pkgutil

import pytest

import appliance
from tests.appliance.commands.open_folders import let_everybody_enter

NOBODY = 65534

if os.geteuid() == 0:  # who is not root cannot become another user

    @contextlib.contextmanager
    def as_nobody():
        groups = os.getgroups()
        os.setgroups([])
        os.seteuid(NOBODY)
        try:
            yield
        finally:
            os.seteuid(0)
            os.setgroups(groups)

    @pytest.fixture
    def strangers(box, tmp_path):
        """A box of root's in a folder that anybody may enter; the program is read already."""
        for module in pkgutil.walk_packages(appliance.__path__, "appliance."):
            importlib.import_module(module.name)
        importlib.import_module("web.serve")
        let_everybody_enter(tmp_path)
        return box

    @pytest.mark.parametrize(
        "argv",
        [
            ["key", "list"],
            ["key", "create", "--environment", "live", "--name", "Partner"],
            ["staff", "list"],
            ["doctor"],
            ["backup"],
            ["backup", "kit"],
            ["tls", "show"],
            ["restore", "--latest"],
            ["serve", "--port", "0"],
        ],
    )
    def test_a_stranger_is_told_whose_box_it_is(strangers, argv):
        with as_nobody():
            said = strangers.complaint(*argv)

        assert f"{strangers.data} is open to root alone" in said
        assert "sudo" in said
