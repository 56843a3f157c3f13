"""Sign dist/venuebox as a release for `venuebox update`.

`make release KEY=…` runs this script with an Ed25519 private key in PEM format. The public key is
in packaging/release.pub, which is built into the program. A box only accepts releases that are
signed with this key. With `--key`, write packaging/release.pub, and first generate the private
key if it does not exist.
"""

import argparse
import hashlib
import io
import json
import os
import re
import sys
import tarfile
import tomllib
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)

from appliance.database.migrate import newest_schema

ROOT = Path(__file__).resolve().parents[1]
PUBLIC = ROOT / "packaging" / "release.pub"


def main() -> int:
    """Write the release or, with `--key`, the public key. Return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("key", type=Path)
    parser.add_argument("--key", dest="only_key", action="store_true")
    arguments = parser.parse_args()
    if arguments.only_key:
        return write_public_key(arguments.key)
    key = read_key(arguments.key)
    if PUBLIC.read_text("ascii").strip() != public_half(key):
        print(f"{arguments.key} does not match {PUBLIC.name}. Use another key.", file=sys.stderr)
        return 1
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    target = ROOT / "dist" / f"venuebox-{project}-{os.uname().machine}.release"
    program = (ROOT / "dist" / "venuebox").read_bytes()
    target.write_bytes(make_release(program, key, version=project, notes=notes_of(project)))
    print(f"signed {target}")
    return 0


def write_public_key(path: Path) -> int:
    """Generate the private key if it is missing. Write the public key to packaging/release.pub.

    Returns the exit status, which is 1 if release.pub contains a different key.
    """
    if not path.exists():
        private = Ed25519PrivateKey.generate()
        pem = private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        with open(path, "xb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
            file.write(pem)
        print(f"Created {path}. Keep it offline: it allows replacing the program of every box.")
    found = public_half(read_key(path))
    if PUBLIC.exists() and PUBLIC.read_text("ascii").strip() != found:
        print(
            f"{PUBLIC.name} contains a different key. Boxes accept only releases signed with it.",
            file=sys.stderr,
        )
        return 1
    PUBLIC.write_text(f"{found}\n", "ascii")
    return 0


def read_key(path: Path) -> Ed25519PrivateKey:
    """Read the private key. Raises TypeError if it is not an Ed25519 key."""
    key = load_pem_private_key(path.read_bytes(), None)
    if not isinstance(key, Ed25519PrivateKey):
        raise TypeError(f"{path} is not an Ed25519 key")
    return key


def public_half(key: Ed25519PrivateKey) -> str:
    """Return the public key in hex."""
    return key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw).hex()


def make_release(
    program: bytes, key: Ed25519PrivateKey, *, version: str, minimum: str = "0", notes: str = "",
    **changes: object,
) -> bytes:  # fmt: skip
    """Return a release file: manifest, signature and program. `changes` are for tests."""
    manifest = json.dumps({
        "version": version, "minimum": minimum, "machine": os.uname().machine,
        "schema": newest_schema(), "sha256": hashlib.sha256(program).hexdigest(),
        "size": len(program), "notes": notes, **changes,
    }).encode()  # fmt: skip
    members = {
        "manifest.json": manifest, "manifest.sig": key.sign(manifest), "venuebox": program,
    }  # fmt: skip
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        for name, content in members.items():
            about = tarfile.TarInfo(name)
            about.size = len(content)
            archive.addfile(about, io.BytesIO(content))
    return file.getvalue()


def notes_of(version: str) -> str:
    """Return the section about the version in CHANGELOG.md, or an empty string."""
    text = (ROOT / "CHANGELOG.md").read_text("utf-8")
    found = re.search(
        rf"^## \[{re.escape(version)}\][^\n]*\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL
    )
    return found[1].strip() if found else ""


if __name__ == "__main__":
    sys.exit(main())
