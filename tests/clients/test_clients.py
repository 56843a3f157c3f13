"""Clients generated from the OpenAPI document pass type checks and can book (`make clients`)."""

import os
import re
import shutil
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.request import urlopen

import pytest

from tests.journeys.box_process import BoxProcess, found_box
from tests.journeys.partner_programs import Partner

pytestmark = pytest.mark.process
HERE = Path(__file__).parent
TOOLS = HERE.parents[1] / "build" / "clients"
DATE = str(datetime.now(UTC).date() + timedelta(days=7))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with the programs, and the OpenAPI document as the box serves it."""
    made = tmp_path_factory.mktemp("clients")
    for program in (*HERE.glob("book_*"), HERE / "tsconfig.json"):
        shutil.copy(program, made)
    (made / "node_modules").mkdir()
    for package in (TOOLS / "node_modules").iterdir():
        (made / "node_modules" / package.name).symlink_to(package)
    return made


@pytest.fixture(scope="module")
def box(folder):
    founded = found_box(folder)
    with BoxProcess(founded.data, log=folder / "box.log") as running:
        with urlopen(f"{running.address}/test/openapi.json", timeout=15) as answer:  # noqa: S310
            (folder / "openapi.json").write_bytes(answer.read())
        yield Partner(running.address + "/test", founded.keys["test"], folder)


def run(folder, *words, **environ):
    """Run a tool or a program with the Python and Node of the tools."""
    node = Path(sys.executable).parent
    path = f"{TOOLS}/bin:{TOOLS}/node_modules/.bin:{node}:{os.environ['PATH']}"
    done = subprocess.run(
        [str(word) for word in words],
        capture_output=True, text=True, check=False, cwd=folder, timeout=300,
        env={"PATH": path, "HOME": str(folder), **environ},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


def generate(folder, generator, output):
    run(folder, "openapi-generator-cli", "generate", "-i", "openapi.json", "-g", generator,
        "-o", output)  # fmt: skip


def download(box, folder, ending):
    """Download the package that the box's partner guide links to."""
    with urlopen(f"{box.url}/docs/partners/guide", timeout=15) as answer:  # noqa: S310
        found = re.search(rf"install (http://\S+{ending})<", answer.read().decode())
    assert found, "the guide names no package"
    with urlopen(found[1], timeout=15) as answer:  # noqa: S310
        package = folder / found[1].rpartition("/")[2]
        package.write_bytes(answer.read())
    return package


def check_types(folder, program):
    """Type-check the program with the code it uses. Errors inside generated code are ignored."""
    run(folder, "mypy", "--strict", "--follow-imports=silent", "--no-incremental", program)


def assert_booked(box, folder, reference, *program):
    """Check that the program succeeds and has booked and cancelled."""
    environ = {"SERVICE_URL": box.url, "SERVICE_KEY": box.key, "DATE": DATE}
    run(folder, *program, **environ, DOCUMENT=str(folder / "openapi.json"))
    _, page = box.call("GET", f"/v1/reservations?from={DATE}&to={DATE}")
    mine = [item for item in page["items"] if item.get("externalRef") == reference]
    assert [item["status"] for item in mine] == ["cancelled"]


def test_the_python_client_of_openapi_generator_books(box, folder):
    generate(folder, "python", "made")
    (folder / "made" / "openapi_client").rename(folder / "openapi_client")

    run(folder, "mypy", "--no-incremental", "openapi_client")
    check_types(folder, "book_openapi_generator.py")

    assert_booked(box, folder, "openapi-generator", "python", "book_openapi_generator.py")


def test_the_python_package_of_the_box_books(box, folder):
    wheel = download(box, folder, ".whl")
    run(folder, "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", folder, wheel)

    check_types(folder, "book_venuebox_client.py")

    assert_booked(box, folder, "venuebox-client", "python", "book_venuebox_client.py")


def test_the_models_of_datamodel_code_generator_match_requests_and_answers(box, folder):
    run(folder, "datamodel-codegen", "--input", "openapi.json", "--input-file-type", "openapi",
        "--output", "partner_models.py", "--output-model-type", "pydantic_v2.BaseModel",
        "--use-annotated")  # fmt: skip

    check_types(folder, "book_datamodel.py")

    assert_booked(box, folder, "datamodel-code-generator", "python", "book_datamodel.py")


def test_the_typescript_clients_of_the_box_and_of_openapi_generator_book(box, folder):
    archive = download(box, folder, ".tgz")
    package = "node_modules/venuebox-client"
    run(folder, "tar", "-xzf", archive, f"--one-top-level={package}", "--strip-components=1")
    generate(folder, "typescript-fetch", "typescript-fetch")

    run(folder, "tsc")

    assert_booked(box, folder, "venuebox-client-ts", "node", "book_venuebox_client.mjs")
    assert_booked(box, folder, "typescript-fetch", "node", "book_typescript_fetch.js")


def test_the_postman_collection_runs_from_top_to_bottom(box, folder):
    with urlopen(f"{box.url}/docs/postman.json", timeout=15) as answer:  # noqa: S310
        (folder / "postman.json").write_bytes(answer.read())
    run(folder, "newman", "run", "postman.json", "--env-var", f"key={box.key}", "--color", "off")
