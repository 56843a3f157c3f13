"""Checks of the two databases and of SQLite itself."""

import apsw

from appliance.data_directory import ENVIRONMENTS
from appliance.doctor.check import Check, fail, warn, well
from appliance.doctor.patient import NotExamined, Patient, Unopenable
from appliance.errors import Trouble
from appliance.store.connection import check_engine
from appliance.store.examination import find_signing_key_age, list_damage, read_schema
from appliance.store.migrate import list_migrations
from appliance.store.signing_keys import get_signing_key
from appliance.store.start_check import find_missing_pages
from appliance.tokens import Keyring

_MIB = 1 << 20
_LARGE_WAL = 64 * _MIB
_YEAR = 366 * 24 * 3600 * 1000


def sqlite(_patient: Patient) -> Check:
    """An SQLite that can be trusted with a WAL."""
    version = apsw.sqlite_lib_version()
    try:
        check_engine(version)
    except Trouble as trouble:
        return fail(
            "sqlite",
            "SQLite {version} peut abîmer les données.",
            "{engine_trouble}.",
            "Installez une version récente de venuebox.",
            "Install a recent venuebox.",
            version=version,
            engine_trouble=trouble,
        )
    return well("sqlite", "SQLite {version}.", "SQLite {version}.", version=version)


def integrity(patient: Patient) -> Check:
    """Both files are there and sound: quick_check, foreign_key_check and their logs."""
    damaged, first = [], ""
    for environment in ENVIRONMENTS:
        path = patient.directory.database(environment)
        try:
            with patient.file(environment) as reader:
                damage = list_damage(reader)
                reader.connection.execute("ROLLBACK")  # SQLite tells no reader how long a log is
                missing = find_missing_pages(reader.connection, path)
                damage += [missing] if missing else []
        except Unopenable:
            return _unopenable(patient)
        except NotExamined:
            damage = ["missing"]
        except (apsw.CorruptError, apsw.NotADBError, apsw.IOError) as error:
            damage = [str(error)]
        if damage:
            damaged.append(path.name)
            first = first or damage[0]
    if damaged:
        return fail(
            "integrity",
            "{names} : absente ou abîmée ({first}).",
            "{names}: missing or damaged ({first}).",
            "Arrêtez la box, puis lancez venuebox restore --latest : ce qui est là reste de côté.",
            "Stop the box, then run venuebox restore --latest: what is there is put aside.",
            names=", ".join(damaged),
            first=first,
        )
    return well("integrity", "Les deux bases sont saines.", "Both databases are sound.")


def _unopenable(patient: Patient) -> Check:
    return fail(
        "integrity",
        "Les bases ne s'ouvrent pas : rien ne peut être écrit dans {root}, ou le disque est plein.",
        "The databases cannot be opened: nothing can be written in {root}, or its disk is full.",
        "Faites de la place, ou rendez ces fichiers à la box ; les bases ne sont pas en cause.",
        "Make room, or give these files back to the box; the databases are not to blame.",
        root=patient.directory.root,
    )


def schema(patient: Patient) -> Check:
    """The files were written by this version, or by an older one that `serve` will upgrade."""
    known = list_migrations()[-1][0]
    found = []
    for environment in ENVIRONMENTS:
        with patient.file(environment) as reader:
            found.append(read_schema(reader))
    if max(found) > known:
        return fail(
            "schema",
            "Les données viennent d'une version plus récente (schéma {found}, ici {known}).",
            "The data was written by a newer version (schema {found}, here {known}).",
            "Réinstallez cette version-là : rien n'a été modifié.",
            "Install that version again: nothing was changed.",
            found=max(found),
            known=known,
        )
    if min(found) < known:
        return warn(
            "schema",
            "Les données seront mises à jour au prochain démarrage ({found} vers {known}).",
            "The data will be upgraded at the next start ({found} to {known}).",
            "Démarrez la box avec cette version : une copie est gardée avant.",
            "Start the box with this version: a copy is kept before.",
            found=min(found),
            known=known,
        )
    return well("schema", "Schéma {known}.", "Schema {known}.", known=known)


def wal(patient: Patient) -> Check:
    """What waits to be folded into the files stays small (docs/promises.md, G11)."""
    sizes = [
        path.stat().st_size
        for environment in ENVIRONMENTS
        if (path := patient.directory.root / f"{environment}.db-wal").exists()
    ]
    size = max(sizes, default=0) // _MIB
    if max(sizes, default=0) > _LARGE_WAL:
        return warn(
            "wal",
            "Le journal d'écriture atteint {size} Mio : quelque chose lit sans s'arrêter.",
            "The write-ahead log has grown to {size} MiB: something reads without end.",
            "Fermez les exports en cours, puis redémarrez la box.",
            "Close running exports, then restart the box.",
            size=size,
        )
    return well("wal", "Journal d'écriture : {size} Mio.", "Write-ahead log: {size} MiB.",
                size=size)  # fmt: skip


def signing_key(patient: Patient) -> Check:
    """The key that signs guest passes opens with the master key and is not old."""
    master, oldest = patient.key(), 0
    for environment in ENVIRONMENTS:
        with patient.rows(environment) as reader:
            try:
                get_signing_key(reader, Keyring(master, environment))
            except Trouble as trouble:
                return fail(
                    "signing_key",
                    "La clé des pass de {environment} ne s'ouvre pas.",
                    "The guest pass key of {environment} cannot be opened: {trouble}.",
                    "Restaurez secrets/master.key et les bases d'une même sauvegarde.",
                    "Restore secrets/master.key and the databases from one backup.",
                    environment=environment,
                    trouble=trouble,
                )
            oldest = max(oldest, find_signing_key_age(reader) or 0)
    days = oldest // 86_400_000
    if oldest > _YEAR:
        return warn(
            "signing_key",
            "La clé des pass a {days} jours : on la change chaque année.",
            "The guest pass key is {days} days old: it is changed every year.",
            "Portail, L'entrée, ou venuebox signing-key rotate : les pass donnés restent valables.",
            "Portal, Door, or venuebox signing-key rotate: passes already given stay valid.",
            days=days,
        )
    return well("signing_key", "La clé des pass a {days} jours.",
                "The guest pass key is {days} days old.", days=days)  # fmt: skip
