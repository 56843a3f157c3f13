"""Build dist/venuebox: one file with everything inside, the same bytes from the same inputs.

Called by `make binary`, with the Python of build/python.
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
# Nothing inside tells when it was built; what needs an instant gets this one.
EPOCH = "1767225600"  # 2026-01-01
# What stands in the bootloader in place of the hash; as long as the hash.
UNNAMED = b"venuebox-build-venuebox-build-venuebox-build-venuebox-build-venu"


def main() -> int:
    """Build dist/venuebox, or with `--again` prove that another folder gives the same bytes."""
    with tempfile.TemporaryDirectory(prefix="venuebox-build-") as scratch:
        if sys.argv[1:] == ["--again"]:
            return build_elsewhere(Path(scratch))
        return build(ROOT / "dist", Path(scratch))


def build_elsewhere(scratch: Path) -> int:
    """Copy the tree to a folder of another name and length, build there, compare."""
    copy = scratch / "another" / "place" / "for-the-same-tree"
    aside = shutil.ignore_patterns(".*", "node_modules", "__pycache__", "dist", "build", "tests")
    shutil.copytree(ROOT, copy, ignore=aside)
    modules = Path("web", "frontend", "node_modules")
    (copy / modules).symlink_to(ROOT / modules)
    subprocess.run([sys.executable, copy / "packaging" / "build.py"], check=True)
    found = [hash_of(tree / "dist" / "venuebox") for tree in (ROOT, copy)]
    if found[0] != found[1]:
        print("the same inputs gave another file in another folder", file=sys.stderr)
        return 1
    print("the same inputs gave the same bytes in another folder")
    return 0


def hash_of(path: Path) -> str:
    """SHA-256, in hexadecimal."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def build(target: Path, scratch: Path) -> int:
    """Build in `scratch`, put the file into `target`, and say what it is."""
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
    """Write the program's hash into it, as the name of its unpacked folder (runtime_place.c)."""
    program = built.read_bytes()
    if program.count(UNNAMED) != 1:
        raise RuntimeError("the bootloader has no place for the program's hash")
    built.write_bytes(program.replace(UNNAMED, hash_of(built).encode()))


def newest_glibc(work: Path, built: Path) -> str:
    """The newest version of the C library that anything inside asks for."""
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
