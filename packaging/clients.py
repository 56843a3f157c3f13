"""Pack a Python and a TypeScript client of the API: `python packaging/clients.py TOOLS FOLDER`.

`make clients` runs it. TOOLS has the generators, and FOLDER gets the packages, which the box serves
at `/static/clients/`. The same sources give the same bytes.
"""

import json
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory

from web.api.openapi import build_document, describe_servers
from web.routes import PARTNER_ROUTE_TABLE

VERSION = version("venuebox")
SERVERS = describe_servers("https://box.example", "live")
CODE = """import createClient from "openapi-fetch";

export const connect = (baseUrl, key) =>
  createClient({ baseUrl, headers: { Authorization: `Bearer ${key}` } });
"""
TYPES = """import type { Client } from "openapi-fetch";
import type { components, paths } from "./schema.js";

export type { components, paths };
/** Connect to a box, such as https://box.example or https://box.example/test, with a key. */
export function connect(baseUrl: string, key: string): Client<paths>;
"""
NAMES = {"project_name_override": "venuebox-client", "package_name_override": "venuebox_client",
         "package_version_override": VERSION}  # fmt: skip


def main(tools: Path, folder: Path) -> None:
    """Replace the packages in `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    with TemporaryDirectory() as name:
        work = Path(name)
        document = build_document(PARTNER_ROUTE_TABLE, SERVERS)
        (work / "openapi.json").write_text(json.dumps(document))
        pack_python(tools, work, folder)
        pack_typescript(tools, work, folder)


def pack_python(tools: Path, work: Path, folder: Path) -> None:
    """Build the wheel of openapi-python-client's client."""
    (work / "names.json").write_text(json.dumps(NAMES))
    run(work, tools / "bin" / "openapi-python-client", "generate", "--path", "openapi.json",
        "--config", "names.json", "--meta", "setup", "--output-path", "python",
        "--fail-on-warning")  # fmt: skip
    run(work, sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation",
        "--disable-pip-version-check", "--wheel-dir", folder, work / "python")  # fmt: skip


def pack_typescript(tools: Path, work: Path, folder: Path) -> None:
    """Build an npm package of openapi-typescript's types, with openapi-fetch as the client."""
    package = work / "typescript"
    package.mkdir()
    wanted = json.loads((tools / "package.json").read_text())["devDependencies"]
    about = {
        "name": "venuebox-client", "version": VERSION, "license": "Apache-2.0", "type": "module",
        "exports": {"types": "./index.d.ts", "default": "./index.js"},
        "dependencies": {"openapi-fetch": wanted["openapi-fetch"]},
    }  # fmt: skip
    (package / "package.json").write_text(json.dumps(about, indent=2))
    (package / "index.js").write_text(CODE)
    (package / "index.d.ts").write_text(TYPES)
    run(work, tools / "node_modules" / ".bin" / "openapi-typescript", "openapi.json",
        "--output", package / "schema.d.ts")  # fmt: skip
    run(package, "npm", "pack", "--silent", "--pack-destination", folder)


def run(folder: Path, *words: str | Path) -> None:
    """Run a program in `folder`. If it fails, exit with its error message."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    times = {"SOURCE_DATE_EPOCH": "315532800"}  # 1980-01-01, the earliest date that a zip can store
    done = subprocess.run(
        words, cwd=folder, env=os.environ | times | {"PATH": path}, timeout=300, check=False,
        capture_output=True, text=True,
    )  # fmt: skip
    if done.returncode:
        sys.exit(done.stdout + done.stderr)


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve())
