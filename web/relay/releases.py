"""Releases that the relay's operator offers to a share of the boxes that allow it.

The relay's data directory contains at most one release for each machine type, such as x86_64. Each
box reports the result of its latest update. If the staged release fails on one box, no other box
receives it until the operator stages it again.
"""

import hashlib
import shutil
import tarfile
from pathlib import Path
from typing import IO, Any, cast

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from appliance.core.errors import OperatorError
from appliance.core.files import atomic_file, make_folder, read_json, write_json
from appliance.release import (
    OUTCOMES,
    PROGRAM_MEMBER,
    Manifest,
    UpdateRecord,
    open_archive,
    read_manifest,
    read_update_record,
)
from web.relay.enrolment import Enrolments

_REPORT_MAX = 64 * 1024


class Stage(msgspec.Struct, frozen=True):
    """An offered release: its version, and the percentage of the boxes that may install it."""

    version: str
    share: int
    ignored: list[str] = []  # boxes whose update had already failed, which does not count


def stage_release(
    enrolments: Enrolments, release: IO[bytes], key: Ed25519PublicKey, share: int
) -> Manifest:
    """Offer the open file `release` to `share` percent of the boxes.

    Replaces the release that was offered before for the same machine type. Raises OperatorError if
    the release is damaged or its signature does not match `key`.
    """
    try:
        with open_archive(release) as archive:
            manifest = read_manifest(archive, key)
            program = archive.extractfile(PROGRAM_MEMBER)
            found = hashlib.file_digest(cast("Any", program), "sha256") if program else None
    except (KeyError, tarfile.TarError):
        found = None
    if found is None or found.hexdigest() != manifest.sha256:
        raise OperatorError("the release is damaged. Download it again")
    make_folder(enrolments.releases)
    state, copy = _files(enrolments, manifest.machine)
    release.seek(0)
    with atomic_file(copy) as target:
        shutil.copyfileobj(release, target)
        # The old share is not for the new release, so offer nothing until the new one is written.
        state.unlink(missing_ok=True)
    failed = find_failures(enrolments, manifest.version)
    write_json(state, Stage(manifest.version, share, failed))
    return manifest


def find_release(enrolments: Enrolments, name: str, machine: str) -> Path | None:
    """Return the path of the release that the box `name` may install, or None if there is none."""
    state, copy = _files(enrolments, machine)
    stage = read_json(state, Stage)
    if stage is None or is_stopped(enrolments, stage):
        return None
    # The hash includes the version, so that each release goes to different boxes first.
    drawn = int.from_bytes(hashlib.sha256(f"{stage.version} {name}".encode()).digest()) % 100
    return copy if drawn < stage.share else None


def list_stages(enrolments: Enrolments) -> dict[str, Stage]:
    """Return the staged releases by machine type."""
    paths = sorted(enrolments.releases.glob("*.json"))
    found = {path.stem: read_json(path, Stage) for path in paths}
    return {machine: stage for machine, stage in found.items() if stage is not None}


def is_stopped(enrolments: Enrolments, stage: Stage) -> bool:
    """Whether a box's update to this release has failed since the release was staged.

    If so, no other box receives the release.
    """
    return not set(find_failures(enrolments, stage.version)) <= set(stage.ignored)


def find_failures(enrolments: Enrolments, version: str) -> list[str]:
    """Return the names of the boxes whose update to `version` failed."""
    reports = {name: read_report(enrolments, name) for name in enrolments.boxes()}
    return [
        name for name, report in reports.items()
        if report and report.version == version and report.stage in OUTCOMES - {"done"}
    ]  # fmt: skip


def read_report(enrolments: Enrolments, name: str) -> UpdateRecord | None:
    """Return the box's report of its latest update, or None if it has sent none."""
    folder = enrolments.backups / name
    try:
        is_small = (folder / "last-update.json").stat().st_size <= _REPORT_MAX
    except OSError:
        return None
    return read_update_record(folder) if is_small else None


def _files(enrolments: Enrolments, machine: str) -> tuple[Path, Path]:
    folder = enrolments.releases
    return folder / f"{machine}.json", folder / f"{machine}.release"
