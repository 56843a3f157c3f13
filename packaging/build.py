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
# The placeholder for the program's hash in the bootloader. It has the same length as the hash.
UNNAMED = b"venuebox-build-venuebox-build-venuebox-build-venuebox-build-venu"


def main() -> int:
    """Build dist/venuebox. With `--again`, check that another folder gives an identical file."""
    with tempfile.TemporaryDirectory(prefix="venuebox-build-") as scratch:
        if sys.argv[1:] == ["--again"]:
            return build_elsewhere(Path(scratch))
        return build(ROOT / "dist", Path(scratch))


def build_elsewhere(scratch: Path) -> int:
    """Build in a copy of the source tree and compare the result with dist/venuebox.

    The path of the copy has a different length. Returns the exit status.
    """
    copy = scratch / "another" / "place" / "for-the-same-tree"
    aside = shutil.ignore_patterns(".*", "node_modules", "__pycache__", "dist", "build", "tests")
    shutil.copytree(ROOT, copy, ignore=aside)
    modules = Path("web", "frontend", "node_modules")
    (copy / modules).symlink_to(ROOT / modules)
    subprocess.run([sys.executable, copy / "packaging" / "build.py"], check=True)
    found = [hash_of(tree / "dist" / "venuebox") for tree in (ROOT, copy)]
    if found[0] != found[1]:
        print("the build is not reproducible: another folder gave other bytes", file=sys.stderr)
        return 1
    print("the build is reproducible: another folder gave the same bytes")
    return 0


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
    name(built)
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


def name(built: Path) -> None:
    """Write the program's hash into the program, which unpacks to a folder with this name.

    See runtime_place.c. Raises RuntimeError if the placeholder for the hash is not found once.
    """
    program = built.read_bytes()
    if program.count(UNNAMED) != 1:
        raise RuntimeError("the bootloader does not contain one placeholder for the program's hash")
    built.write_bytes(program.replace(UNNAMED, hash_of(built).encode()))


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
