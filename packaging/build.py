"""Build dist/venuebox, a single reproducible file that contains everything the program needs.

`make binary` runs this script with the Python in build/python.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SPEC = ROOT / "packaging" / "venuebox.spec"
# A fixed build time, so that the file does not depend on when it was built.
EPOCH = "1767225600"  # 2026-01-01


def main() -> int:
    """Build dist/venuebox."""
    with tempfile.TemporaryDirectory(prefix="venuebox-build-") as scratch:
        return build(ROOT / "dist", Path(scratch))


def hash_of(path: Path) -> str:
    """Return the SHA-256 hash of a file, in hexadecimal."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def build(target: Path, scratch: Path) -> int:
    """Build in `scratch`, move the file to `target`, and print its hash and requirements."""
    environ = {
        **os.environ,
        "PYTHONHASHSEED": "0",
        "SOURCE_DATE_EPOCH": EPOCH,
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYINSTALLER_CONFIG_DIR": str(scratch / "cache"),
        "VENUEBOX_BUILD_INVENTORY": str(scratch / "inventory"),
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
    }
    subprocess.run(
        [sys.executable, "-m", "PyInstaller", "--noconfirm", "--clean", "--log-level=ERROR",
         f"--workpath={scratch / 'work'}", f"--distpath={scratch / 'dist'}", SPEC],
        check=True, env=environ, cwd=scratch,
    )  # fmt: skip
    built = scratch / "dist" / "venuebox"
    built.chmod(0o755)
    target.mkdir(parents=True, exist_ok=True)
    aside = target / ".venuebox.part"
    shutil.copy2(built, aside)
    aside.replace(target / "venuebox")
    glibc = newest_glibc(scratch / "work" / "venuebox", built)
    print(f"built {target / 'venuebox'}")
    print(f"SHA-256 {hash_of(built)}")
    print(f"needs glibc {glibc} or newer, on {os.uname().machine}")
    return 0


def newest_glibc(work: Path, built: Path) -> str:
    """Return the newest glibc version that the program or one of its libraries requires."""
    table = (work / "Analysis-00.toc").read_text("utf-8")
    libraries = {path for path in re.findall(r"'(/[^']+)'", table) if ".so" in Path(path).name}
    found = {(2, 0)}
    for library in (*sorted(libraries), built):
        asked = subprocess.run(["objdump", "-T", library], capture_output=True, check=False)
        versions = re.findall(rb"GLIBC_(\d+)\.(\d+)", asked.stdout)
        found |= {(int(major), int(minor)) for major, minor in versions}
    return "{}.{}".format(*max(found))


if __name__ == "__main__":
    sys.exit(main())
