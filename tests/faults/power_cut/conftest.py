"""Thousands of lives in one test."""

import logging

import pytest


@pytest.fixture(autouse=True)
def nothing_is_logged():
    """A record keeps its exception, that keeps the frames, and those a disk of many megabytes."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)
