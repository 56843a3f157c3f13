"""The layers of the packages: every import counts, also in functions and under TYPE_CHECKING."""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("appliance", "terminal_bridge", "web")

# A package may import from its own layer and earlier ones. Add a new package here first.
LAYERS = (
    {"appliance", "appliance.core"},
    {"appliance.clock", "appliance.logs"},
    {"appliance.database", "appliance.scheduler"},
    {"appliance.program", "appliance.release", "appliance.relay"},
    {"appliance.outbox"},
    {"appliance.staff"},
    {"appliance.venue"},
    {"appliance.api_keys"},
    {"appliance.reservations"},
    {"appliance.door"},
    {"appliance.environment", "appliance.box"},
    {"appliance.http"},
    {"appliance.webhooks"},
    {"appliance.email"},
    {"appliance.privacy"},
    {"appliance.tls"},
    {"appliance.backup"},
    {"appliance.mirror"},
    {"appliance.checks"},
    {"appliance.jobs"},
    {"appliance.commands"},
    {"terminal_bridge"},
    {"web"},
)
LAYER_OF = {room: number for number, layer in enumerate(LAYERS) for room in layer}

# Two SQLite libraries in a process break each other's locks. apsw never opens the bridge's spool.
OTHER_SQLITES = {"sqlite3", "_sqlite3", "pysqlite3", "aiosqlite"}


@dataclass(frozen=True)
class Import:
    importer: str
    imported: str
    line: int
    binds_top_name: bool

    def __str__(self) -> str:
        return f"{self.importer}:{self.line} imports {self.imported}"


def test_every_package_of_the_appliance_has_its_layer():
    rooms = {room_of(module) for module in modules_of(ROOT)}

    assert rooms - LAYER_OF.keys() == set()


def test_no_import_points_to_a_higher_layer():
    assert back_arrows(ROOT) == []


def test_no_packages_import_each_other_in_a_cycle():
    assert circle({(room_of(a), room_of(b)) for a, b in inner_arrows(ROOT)}) == []


def test_no_modules_import_each_other_in_a_cycle():
    assert circle(inner_arrows(ROOT)) == []


def test_the_name_web_always_means_the_aiohttp_module():
    assert bare_webs(ROOT) == []


def test_no_sqlite_library_but_apsw_is_imported():
    assert other_sqlites(ROOT) == []


def test_exactly_the_imported_libraries_are_declared():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    names = {re.split(r"[<>=]", each)[0] for each in project["dependencies"]}
    other_names = {"phonenumbers": "phonenumberslite"}
    imported = {top(each.imported) for each in _imports_of_project()}
    libraries = imported - sys.stdlib_module_names - {*PACKAGES, "_typeshed"}

    assert {other_names.get(library, library) for library in libraries} == names


def test_the_packaging_folder_does_not_shadow_the_library_of_that_name():
    assert not (ROOT / "packaging" / "__init__.py").exists()


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("appliance/database/tables.py", "from appliance.reservations.create import reserve"),
        ("appliance/database/tables.py", "import appliance.reservations.create"),
        ("appliance/database/tables.py", "from appliance.reservations import create"),
        ("appliance/database/tables.py", "from appliance import reservations"),
        ("appliance/database/tables.py", "from ..reservations import create"),
        ("appliance/database/__init__.py", "from ..reservations.create import reserve"),
        (
            "appliance/database/tables.py",
            "def late():\n    from appliance.reservations import create",
        ),
        (
            "appliance/database/tables.py",
            "if TYPE_CHECKING:\n    from appliance.reservations.create import reserve",
        ),
        ("appliance/core/errors.py", "from appliance.venue.model import Venue"),
        ("appliance/reservations/create.py", "from appliance.commands import keys"),
        ("appliance/reservations/create.py", "from terminal_bridge.protocol import scan"),
        ("terminal_bridge/protocol.py", "from web.routes import ROUTES"),
    ],
)
def test_the_check_finds_an_import_of_a_higher_layer(tmp_path, path, source):
    a_tree(tmp_path, {path: source})

    assert len(back_arrows(tmp_path)) == 1


def test_the_check_allows_an_import_of_a_lower_layer(tmp_path):
    a_tree(
        tmp_path,
        {
            "web/routes.py": "from aiohttp import web\nfrom terminal_bridge.protocol import scan",
            "terminal_bridge/protocol.py": "from appliance.reservations.create import reserve",
            "appliance/reservations/create.py": "from appliance.database import tables",
            "appliance/database/tables.py": "from ..core.errors import ApiError\nimport apsw",
        },
    )

    assert back_arrows(tmp_path) == bare_webs(tmp_path) == other_sqlites(tmp_path) == []
    assert circle(inner_arrows(tmp_path)) == []


def test_the_check_finds_a_cycle_within_one_layer(tmp_path):
    a_tree(
        tmp_path,
        {
            "appliance/reservations/create.py": "from appliance.reservations import change",
            "appliance/reservations/change.py": "from appliance.reservations.create import reserve",
        },
    )

    assert back_arrows(tmp_path) == []
    assert set(circle(inner_arrows(tmp_path))) == {
        "appliance.reservations.create",
        "appliance.reservations.change",
    }


@pytest.mark.parametrize("source", ["import web", "import web.routes", "def f():\n    import web"])
def test_the_check_finds_an_import_of_the_web_package_by_its_bare_name(tmp_path, source):
    a_tree(tmp_path, {"web/application.py": source})

    assert len(bare_webs(tmp_path)) == 1


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("appliance/database/tables.py", "import sqlite3"),
        ("terminal_bridge/spool.py", "from sqlite3 import connect"),
        ("web/api/venue.py", "import aiosqlite"),
    ],
)
def test_an_import_of_another_sqlite_library_is_found(tmp_path, path, source):
    a_tree(tmp_path, {path: source})

    assert len(other_sqlites(tmp_path)) == 1


def test_the_bridge_may_use_aiosqlite_for_its_spool(tmp_path):
    a_tree(tmp_path, {"terminal_bridge/spool.py": "import aiosqlite"})

    assert other_sqlites(tmp_path) == []


def a_tree(root: Path, sources: dict[str, str]) -> None:
    """Create a project of these files. The modules that they may import are empty."""
    around = (
        "appliance/__init__.py",
        "appliance/core/errors.py",
        "appliance/venue/model.py",
        "appliance/database/__init__.py",
        "appliance/database/tables.py",
        "appliance/reservations/__init__.py",
        "appliance/reservations/create.py",
        "appliance/commands/key.py",
        "appliance/reservations/change.py",
        "terminal_bridge/protocol.py",
        "web/routes.py",
    )
    for path, source in {**dict.fromkeys(around, ""), **sources}.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(source)


def back_arrows(root: Path) -> list[str]:
    return [
        str(found)
        for found in inner_imports(root)
        if LAYER_OF.get(room_of(found.importer), -1) < LAYER_OF.get(room_of(found.imported), -1)
    ]


def bare_webs(root: Path) -> list[str]:
    return [
        str(found)
        for found in imports_of(root)
        if found.binds_top_name and top(found.imported) == "web"
    ]


def other_sqlites(root: Path) -> list[str]:
    return [
        str(found)
        for found in imports_of(root)
        if top(found.imported) in OTHER_SQLITES
        and (top(found.importer), top(found.imported)) != ("terminal_bridge", "aiosqlite")
    ]


def circle(arrows: set[tuple[str, str]]) -> list[str]:
    """Return the members of one cycle in these imports, or none if there is no cycle."""
    graph: dict[str, set[str]] = {}
    for start, end in arrows:
        if start != end:
            graph.setdefault(start, set()).add(end)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def inner_arrows(root: Path) -> set[tuple[str, str]]:
    return {(found.importer, found.imported) for found in inner_imports(root)}


def inner_imports(root: Path) -> Iterator[Import]:
    return (found for found in imports_of(root) if top(found.imported) in PACKAGES)


def imports_of(root: Path) -> Iterator[Import]:
    return iter(_imports_of_project() if root == ROOT else _read_imports(root))


@cache
def _imports_of_project() -> list[Import]:
    return list(_read_imports(ROOT))


def _read_imports(root: Path) -> Iterator[Import]:
    modules = modules_of(root)
    for module, path in modules.items():
        package = module if path.name == "__init__.py" else module.rpartition(".")[0]
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"), path)):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    yield Import(module, alias.name, node.lineno, alias.asname is None)
            elif isinstance(node, ast.ImportFrom):
                source = source_of(node, package)
                for alias in node.names:
                    inside = f"{source}.{alias.name}"
                    imported = inside if is_module(inside, modules) else source
                    yield Import(module, imported, node.lineno, binds_top_name=False)


def source_of(node: ast.ImportFrom, package: str) -> str:
    """Return the absolute name after `from`."""
    if node.level == 0:
        return node.module or ""
    parents = package.split(".")
    base = parents[: len(parents) - node.level + 1]
    return ".".join([*base, *([node.module] if node.module else [])])


def is_module(name: str, modules: dict[str, Path]) -> bool:
    """Whether the name is a module or a folder of modules."""
    return name in modules or any(module.startswith(f"{name}.") for module in modules)


def modules_of(root: Path) -> dict[str, Path]:
    return {
        ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__"): path
        for package in PACKAGES
        for path in sorted((root / package).rglob("*.py"))
        if "node_modules" not in path.parts
    }


def room_of(module: str) -> str:
    """Return a module's package: `appliance.database` for `appliance.database.vacuum`.

    Outside the appliance, the package is the first part of the name.
    """
    return ".".join(module.split(".")[: 2 if top(module) == "appliance" else 1])


def top(module: str) -> str:
    return module.partition(".")[0]
