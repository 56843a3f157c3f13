"""List the contents of the built file: a CycloneDX bill of materials and all licence texts.

venuebox.spec calls `make_inventory()` when PyInstaller has determined the contents.
"""

import json
import os
import platform
import re
import shutil
import ssl
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from importlib.metadata import Distribution, distribution
from pathlib import Path
from typing import Any

import apsw

ROOT = Path(__file__).resolve().parents[1]
# The npm packages whose code is sent to browsers. The others are only needed for the build.
BUNDLED_NPM = ("@noble/ed25519", "htmx.org", "idb", "swagger-ui-dist", "zxing-wasm")
LICENCE_FILE = re.compile(r"(LICEN[CS]E|COPYING|NOTICE|AUTHORS)", re.IGNORECASE)

Texts = dict[str, str]


def make_inventory(folder: Path, libraries: Iterable[str]) -> None:
    """Write `sbom.json` and `licences.txt` into `folder`.

    `libraries` are the paths of this machine's shared libraries that the built file contains.
    Exits with an error if a component has no licence text.
    """
    texts: Texts = {}
    bill = python_bill()
    names = run_names() | {"pyinstaller"}
    components = [c for c in bill["components"] if normal(c["name"]) in names]
    for component in components:
        texts[f"{component['name']} {component['version']}"] = python_licence(component["name"])
    for component, text in (*own_parts(), *npm_parts(), *system_parts(libraries)):
        components.append(component)
        texts[f"{component['name']} {component['version']}"] = text
    kept = {c["bom-ref"] for c in components} | {bill["metadata"]["component"]["bom-ref"]}
    bill["components"] = sorted(components, key=lambda c: str(c["bom-ref"]))
    bill["dependencies"] = [
        {**d, "dependsOn": [ref for ref in d.get("dependsOn", []) if ref in kept]}
        for d in bill["dependencies"]
        if d["ref"] in kept
    ]
    without = [name for name, text in texts.items() if not text.strip()]
    if without:
        sys.exit(f"no licence was found for {', '.join(without)}")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "sbom.json").write_text(json.dumps(bill, indent=1, sort_keys=True) + "\n", "utf-8")
    parts = [f"{'=' * 78}\n{name}\n{'=' * 78}\n\n{texts[name].strip()}\n" for name in sorted(texts)]
    (folder / "licences.txt").write_text("\n".join(parts), "utf-8")


def python_bill() -> dict[str, Any]:
    """Return a reproducible CycloneDX bill of materials of this Python environment."""
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch, "sbom.json")
        subprocess.run(
            [sys.executable, "-m", "cyclonedx_py", "environment", "--output-reproducible",
             "--short-PURLs", "--pyproject", ROOT / "pyproject.toml", "-o", file, sys.executable],
            check=True, capture_output=True,
        )  # fmt: skip
        bill: dict[str, Any] = json.loads(file.read_text("utf-8"))
    for component in bill["components"]:
        component.pop("externalReferences", None)  # depends on the source of a package
    return bill


def run_names() -> set[str]:
    """Return the names of the Python packages that the program needs at run time."""
    text = (ROOT / "requirements" / "run.txt").read_text("utf-8")
    return {normal(name) for name in re.findall(r"^([A-Za-z0-9._-]+)==", text, re.MULTILINE)}


def normal(name: str) -> str:
    """Return the normalised form of a package name, so that names can be compared."""
    return re.sub(r"[-_.]+", "-", name).lower()


def python_licence(name: str) -> str:
    """Return the licence files of a Python package, or the licence named in its metadata."""
    found: Distribution = distribution(name)
    files = [f for f in found.files or [] if LICENCE_FILE.match(Path(f).name)]
    text = "\n\n".join(Path(str(f.locate())).read_text("utf-8", "replace") for f in sorted(files))
    said = (
        found.metadata.get("License-Expression")
        or found.metadata.get("License")
        or "; ".join(
            c for c in found.metadata.get_all("Classifier") or [] if c.startswith("License")
        )
    )
    return text or str(said)


def own_parts() -> list[tuple[dict[str, Any], str]]:
    """Return CPython and the SQLite library in apsw, each with its licence text."""
    licence = Path(sys.base_prefix, "lib", f"python{sys.version_info[0]}.{sys.version_info[1]}")
    candidates = (licence / "LICENSE.txt", Path(f"/usr/share/doc/{licence.name}/copyright"))
    text = next((path.read_text("utf-8", "replace") for path in candidates if path.exists()), "")
    return [
        (part("CPython", platform.python_version(), "pkg:generic/python", "PSF-2.0"), text),
        (
            part("SQLite", apsw.sqlite_lib_version(), "pkg:generic/sqlite", "blessing"),
            "SQLite is in the public domain: https://sqlite.org/copyright.html",
        ),
    ]


def npm_parts() -> list[tuple[dict[str, Any], str]]:
    """Return the npm packages in the bundled scripts, each with its licence text."""
    found = []
    for name in BUNDLED_NPM:
        home = ROOT / "web" / "frontend" / "node_modules" / name
        about = json.loads((home / "package.json").read_text("utf-8"))
        files = sorted(path for path in home.iterdir() if LICENCE_FILE.match(path.name))
        text = "\n\n".join(path.read_text("utf-8", "replace") for path in files)
        url = f"pkg:npm/{name.replace('@', '%40')}"
        licence = about["license"]
        found.append((part(name, about["version"], url, licence), text or str(licence)))
    return found


def system_parts(libraries: Iterable[str]) -> list[tuple[dict[str, Any], str]]:
    """Return the Debian packages that own `libraries`, each with its licence text.

    If none is found, as on other systems, returns only OpenSSL.
    """
    owners = {owner for path in libraries if (owner := debian_owner(Path(path)))}
    found = []
    for name, version in sorted(owners):
        copyright_file = Path("/usr/share/doc", name, "copyright")
        text = copyright_file.read_text("utf-8", "replace") if copyright_file.exists() else ""
        found.append((part(name, version, f"pkg:deb/debian/{name}", None), text))
    if not found:
        found.append((part("OpenSSL", ssl.OPENSSL_VERSION.split()[1], "pkg:generic/openssl",
                           "Apache-2.0"), "Apache License 2.0: https://openssl.org"))  # fmt: skip
    return found


def debian_owner(path: Path) -> tuple[str, str] | None:
    """Return the name and version of the Debian package that owns `path`, or None."""
    if shutil.which("dpkg-query") is None:
        return None
    for spelling in (path.resolve(), Path(str(path.resolve()).removeprefix("/usr"))):
        asked = subprocess.run(
            ["dpkg-query", "-S", spelling], capture_output=True, text=True, check=False
        )
        if asked.returncode == 0:
            name = asked.stdout.split(":")[0]
            version = subprocess.run(
                ["dpkg-query", "-W", "-f=${Version}\n", name],
                capture_output=True, text=True, check=True, env={**os.environ, "LC_ALL": "C"},
            ).stdout.splitlines()[0]  # fmt: skip
            return name, version
    return None


def part(name: str, version: str, url: str, licence: str | None) -> dict[str, Any]:
    """Return a CycloneDX component."""
    purl = f"{url}@{version.replace('+', '%2B').replace(':', '%3A').replace('~', '%7E')}"
    licences = {"licenses": [{"license": {"id": licence}}]} if licence else {}
    return {"type": "library", "name": name, "version": version, "purl": purl, "bom-ref": purl,
            **licences}  # fmt: skip
