"""Checks of the data directory: who may look into it, and whether the keys are there."""

import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path

from appliance.data_directory import DataDirectory
from appliance.doctor.check import Check, fail, warn, well
from appliance.doctor.patient import NotExamined, Patient
from appliance.errors import Trouble
from appliance.upkeep.erasure_list import LIST, find_unreadable

_OTHERS = 0o077
_SHOWN = 5
_ASIDE = re.compile(r"\..+\.[0-9]+")  # how files are named until they are put in place


def permissions(patient: Patient) -> Check:
    """Files 0600 and folders 0700, all of one owner (docs/security.md, S25)."""
    root = patient.directory.root
    owner = root.stat().st_uid
    found = list(_walk(patient.directory))
    foreign = [path for path, state in found if state.st_uid != owner]
    if foreign:
        return fail(
            "permissions",
            "Des fichiers n'appartiennent pas au propriétaire de la box : {named}.",
            "Some files do not belong to the owner of the box: {named}.",
            "Rendez-les-lui : chown -R {owner} {root}",
            "Give them back: chown -R {owner} {root}",
            named=_some(root, foreign),
            owner=owner,
            root=root,
        )
    is_open = [path for path, state in found if state.st_mode & _OTHERS]
    if is_open:
        return fail(
            "permissions",
            "D'autres utilisateurs peuvent lire {named}.",
            "Other users can read {named}.",
            "Lancez venuebox doctor --fix.",
            "Run venuebox doctor --fix.",
            named=_some(root, is_open),
        )
    return well(
        "permissions",
        "Seul le propriétaire de la box peut lire ses fichiers.",
        "Only the owner of the box can read its files.",
    )


def master_key(patient: Patient) -> Check:
    """`secrets/master.key`: there, 32 bytes, private."""
    path = patient.directory.master_key_file
    if not path.exists():
        return fail(
            "master_key",
            "La clé maîtresse est absente : aucun lien ni pass ne peut être lu.",
            "The master key is missing: no link and no pass can be read.",
            "Restaurez la dernière sauvegarde dans un autre dossier et copiez-en {path}.",
            "Restore the last backup to another directory and copy {path} from there.",
            path=path.relative_to(patient.directory.root),
        )
    try:
        patient.directory.master_key()
    except Trouble as trouble:
        return fail(
            "master_key",
            "La clé maîtresse est absente, abîmée ou lisible par d'autres.",
            "The master key cannot be used: {trouble}.",
            "Restaurez {path} depuis une sauvegarde, ou lancez venuebox doctor --fix.",
            "Restore {path} from a backup, or run venuebox doctor --fix.",
            trouble=trouble,
            path=path,
        )
    return well("master_key", "La clé maîtresse est là.", "The master key is there.")


def leftovers(patient: Patient) -> Check:
    """Files that were being written aside when the power went: harmless, and worth a word."""
    root = patient.directory.root
    left = [path for path, _ in _walk(patient.directory) if _ASIDE.fullmatch(path.name)]
    if left:
        return warn(
            "leftovers",
            "Des fichiers inachevés sont restés d'une coupure : {named}.",
            "Unfinished files were left by a power cut: {named}.",
            "Vous pouvez les effacer quand la box est arrêtée.",
            "You may delete them while the box is stopped.",
            named=_some(root, left),
        )
    return well("leftovers", "Aucun fichier inachevé.", "No unfinished files.")


def erasures(patient: Patient) -> Check:
    """Each line of `erasures.jsonl` can be read: a restore needs them."""
    root = patient.directory.root
    if not (root / LIST).exists():
        raise NotExamined
    try:
        spoiled = find_unreadable(root)
    except Trouble as trouble:
        return fail(
            "erasures",
            "La liste des effacements, erasures.jsonl, ne peut pas être lue.",
            "The list of erasures cannot be read: {list_trouble}.",
            "Rendez-la au propriétaire de la box ; abîmée, mettez-la de côté et redémarrez la box.",
            "Give it back to the owner of the box; damaged, put it aside and restart the box.",
            list_trouble=trouble,
        )
    if spoiled:
        return warn(
            "erasures",
            "Des lignes d'erasures.jsonl ne peuvent pas être lues : {numbers}.",
            "Some lines of erasures.jsonl cannot be read: {numbers}.",
            "Redémarrez la box : elle note à nouveau ce que ses bases savent. Arrêtez-la ensuite "
            "et effacez ces lignes.",
            "Restart the box: it notes again what its databases know. Then stop it and delete "
            "these lines.",
            numbers=", ".join(map(str, spoiled)),
        )
    return well(
        "erasures", "La liste des effacements est lisible.", "The list of erasures can be read."
    )


def fix_permissions(directory: DataDirectory) -> list[Path]:
    """Take everybody else's rights away; the files and folders that were changed."""
    changed = []
    for path, state in _walk(directory):
        if state.st_mode & _OTHERS:
            try:
                path.chmod(stat.S_IMODE(state.st_mode) & ~_OTHERS)
            except OSError:  # not ours, or a volume without rights: the check says so
                continue
            changed.append(path)
    return changed


def _walk(directory: DataDirectory) -> Iterator[tuple[Path, os.stat_result]]:
    """The directory, its folders and its files; no link is followed out of it."""
    yield directory.root, directory.root.stat()
    for folder, folders, files in os.walk(directory.root):
        for name in (*folders, *files):
            path = Path(folder, name)
            try:
                state = path.lstat()
            except FileNotFoundError:  # the box runs: a file may go at any time
                continue
            if not stat.S_ISLNK(state.st_mode):
                yield path, state


def _some(root: Path, paths: list[Path]) -> str:
    named = ", ".join(str(p if p == root else p.relative_to(root)) for p in paths[:_SHOWN])
    return named + (f" (+{len(paths) - _SHOWN})" if len(paths) > _SHOWN else "")
