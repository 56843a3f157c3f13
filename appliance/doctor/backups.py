"""The check of the backups: the latest that was restored and found whole."""

from pathlib import Path

from appliance.backup.shelf import find_shelf, read_record
from appliance.clock import format_instant
from appliance.doctor.check import Check, fail, warn, well
from appliance.doctor.patient import Patient
from appliance.doctor.words import Instant
from appliance.errors import Trouble
from appliance.upkeep.nights import is_overdue

_WEEK_MS = 7 * 86_400_000


def backups(patient: Patient) -> Check:
    """A backup of the last night, restored aside and found whole; its folder is there."""
    record = read_record(patient.directory.root)
    try:
        shelf = find_shelf(patient.directory, patient.known_settings())
    except Trouble as trouble:
        return fail(
            "backups",
            "Le dossier des sauvegardes, ou son volume, n'est pas là.",
            "{shelf_trouble}.",
            "Branchez le volume, ou corrigez backup.directory.",
            "Plug the volume in, or correct backup.directory.",
            shelf_trouble=trouble,
        )
    because = _because(record.trouble)
    if record.at is None:
        return warn(
            "backups",
            "Aucune sauvegarde n'a encore été vérifiée.",
            "No backup has been proven yet{because}.",
            "Faites-en une sur la page de la box, ou par venuebox backup, puis imprimez le kit.",
            "Make one on the page about the box, or by venuebox backup, then print the kit.",
            because=because,
        )
    when = Instant(record.at, format_instant(record.at)[:16].replace("T", " "))
    if is_overdue(record, patient.clock):
        judge = fail if patient.clock.now() - record.at > _WEEK_MS else warn
        return judge(
            "backups",
            "La dernière sauvegarde vérifiée date du {when} UTC.",
            "The last proven backup is of {when} UTC{because}.",
            "Laissez la box allumée la nuit, ou lancez venuebox backup.",
            "Leave the box on at night, or run venuebox backup.",
            when=when,
            because=because,
        )
    if patient.known_settings().backup.directory and _share_a_volume(shelf, patient):
        return warn(
            "backups",
            "Les sauvegardes vont dans {shelf}, sur le même volume que la box : s'il casse, "
            "les deux sont perdues.",
            "Backups go to {shelf}, on the same volume as the box: if it breaks, both are lost.",
            "Branchez le volume des sauvegardes, ou nommez dans backup.directory un dossier qui "
            "est ailleurs.",
            "Plug the volume for backups in, or name a folder elsewhere in backup.directory.",
            shelf=shelf,
        )
    return well(
        "backups",
        "Dernière sauvegarde restaurée et vérifiée : {when} UTC.",
        "Last backup restored and found whole: {when} UTC.",
        when=when,
    )


def _share_a_volume(shelf: Path, patient: Patient) -> bool:
    device = patient.machine.device
    return device(shelf) == device(patient.directory.root)


def _because(trouble: str) -> str:
    return f" ({trouble})" if trouble else ""
