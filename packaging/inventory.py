"""List the contents of the built file: a CycloneDX bill of materials and all licence texts.

venuebox.spec calls `make_inventory()` when PyInstaller has determined the contents.
"""

import base64
import decimal
import json
import os
import platform
import pyexpat
import re
import shutil
import ssl
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from importlib.metadata import distribution, packages_distributions
from pathlib import Path
from typing import Any

import apsw

ROOT = Path(__file__).resolve().parents[1]
FRONTEND = ROOT / "web" / "frontend"
IMPORT = re.compile(r"""(?:from|import) ?\(?["']((?:@[\w-]+/)?[\w-][\w.-]*)[/"']""")
LICENCE_FILE = re.compile(
    r"(swagger-ui-bundle\.js\.)?(LICEN[CS]E|COPYING|NOTICE|AUTHORS)", re.IGNORECASE
)
# PyInstaller's own part of the file: how it starts.
BOOTLOADER = {"pyinstaller", "pyinstaller-hooks-contrib"}
TOLD = ("name", "version", "author", "licenses")  # of what a package contains
OPENSSL_LICENCE = "Apache-2.0"  # the one part whose licence no package tells

Texts = dict[str, str]
Parts = list[tuple[dict[str, Any], str]]


def make_inventory(folder: Path, libraries: Iterable[str], files: Iterable[str]) -> None:
    """Write `sbom.json` and `licences.txt` into `folder`.

    `libraries` are the paths of this machine's shared libraries that the built file contains, and
    `files` the names of all its files. Exits with an error if a component has no licence text, or
    if a Python package is in the file that requirements/run.txt does not name.
    """
    texts: Texts = {}
    bill = python_bill()
    names = packages_of(files) | BOOTLOADER
    strangers = names - run_names() - BOOTLOADER
    if strangers:
        sys.exit(f"not in requirements/run.txt: exclude {', '.join(sorted(strangers))}")
    components = [c for c in bill["components"] if normal(c["name"]) in names]
    for component in tuple(components):
        inside = parts_inside(normal(component["name"]))
        components += inside
        text = python_licence(component["name"])
        if inside:
            text += "\n\nCompiled into it:\n\n" + "\n".join(map(describe_part, inside))
        texts[f"{component['name']} {component['version']}"] = text
    for component, text in (*own_parts(libraries), *npm_parts(), *system_parts(libraries)):
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


def packages_of(files: Iterable[str]) -> set[str]:
    """Return the normalised names of the Python packages to which `files` belong."""
    owners = packages_distributions()
    modules = {re.split(r"[/.]", file)[0] for file in files}
    return {normal(name) for module in modules for name in owners.get(module, [])}


def run_names() -> set[str]:
    """Return the names of the Python packages that the program needs at run time."""
    text = (ROOT / "requirements" / "run.txt").read_text("utf-8")
    return {normal(name) for name in re.findall(r"^([A-Za-z0-9._-]+)==", text, re.MULTILINE)}


def normal(name: str) -> str:
    """Return the normalised form of a package name, so that names can be compared."""
    return re.sub(r"[-_.]+", "-", name).lower()


def python_licence(name: str) -> str:
    """Return the licence files of a Python package, or the licence named in its metadata."""
    found = distribution(name)
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


def parts_inside(name: str) -> list[dict[str, Any]]:
    """Return what a Python package says is compiled into it."""
    found, parts = distribution(name), []
    for file in found.files or []:
        if Path(file).parent.name == "sboms":
            bill = json.loads(Path(str(found.locate_file(file))).read_text("utf-8"))
            parts += [
                {"type": "library", "bom-ref": f"{name} {each['name']} {each['version']}",
                 "licenses": [{"license": {"id": OPENSSL_LICENCE}}]}
                | {key: each[key] for key in TOLD if key in each}
                | {"purl": each["purl"].partition("?")[0]}  # the rest is where it was built
                for each in bill["components"]
                if each.get("scope") != "excluded" and normal(each["name"]) != name
            ]  # fmt: skip
    return parts


def describe_part(component: dict[str, Any]) -> str:
    """Return the name, author and licences of a component that another one contains."""
    words = [f"{component['name']} {component['version']}"]
    words += [component["author"]] if "author" in component else []
    for licence in component["licenses"]:
        about = licence.get("license", {})
        if "text" in about:
            words.append(base64.b64decode(about["text"]["content"]).decode("utf-8", "replace"))
        else:
            words.append(str(licence.get("expression") or about["id"]))
    return ", ".join(words)


def own_parts(libraries: Iterable[str]) -> Parts:
    """Return CPython, what is compiled into it, and the SQLite library in apsw, with licences."""
    licence = Path(sys.base_prefix, "lib", f"python{sys.version_info[0]}.{sys.version_info[1]}")
    candidates = (licence / "LICENSE.txt", Path(f"/usr/share/doc/{licence.name}/copyright"))
    text = next((path.read_text("utf-8", "replace") for path in candidates if path.exists()), "")
    more = "Software that CPython includes: https://docs.python.org/3/license.html"
    names = " ".join(libraries)  # Debian's CPython uses those of the machine
    expat = pyexpat.EXPAT_VERSION.removeprefix("expat_")
    mpdec = decimal.__libmpdec_version__  # type: ignore[attr-defined]
    compiled_in = [
        (part(name, version, f"pkg:generic/{name}", licence), f"Inside CPython. {licence}. {more}")
        for name, version, licence in (
            ("libexpat", expat, "MIT"), ("libmpdec", mpdec, "BSD-2-Clause"),
        )
        if name not in names
    ]  # fmt: skip
    return [
        *compiled_in,
        (
            part("CPython", platform.python_version(), "pkg:generic/python", "PSF-2.0"),
            f"{text}\n\n{more}" if text else "",
        ),
        (
            part("SQLite", apsw.sqlite_lib_version(), "pkg:generic/sqlite", "blessing"),
            "SQLite is in the public domain: https://sqlite.org/copyright.html",
        ),
    ]


def npm_parts() -> Parts:
    """Return the npm packages whose code is sent to browsers, each with its licence text."""
    sources = "\n".join(path.read_text("utf-8") for path in (FRONTEND / "src").rglob("*.ts"))
    found = []
    for name in sorted({"swagger-ui-dist", *IMPORT.findall(sources)}):
        home = FRONTEND / "node_modules" / name
        about = json.loads((home / "package.json").read_text("utf-8"))
        files = sorted(path for path in home.iterdir() if LICENCE_FILE.match(path.name))
        texts = [path.read_text("utf-8", "replace") for path in files]
        # What is compiled into it, such as the barcode reader behind zxing-wasm.
        texts += re.findall(
            r"^## Licenses\n.*?(?=^## |\Z)",
            (home / "README.md").read_text("utf-8"),
            re.MULTILINE | re.DOTALL,
        )
        text = "\n\n".join(texts)
        url = f"pkg:npm/{name.replace('@', '%40')}"
        licence = about["license"]
        found.append((part(name, about["version"], url, licence), text or str(licence)))
    return found


def system_parts(libraries: Iterable[str]) -> Parts:
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
