import json

import pytest


async def fetch(running, path, **headers):
    async with running.client.get(path, headers=headers) as response:
        return response, await response.text()


@pytest.mark.parametrize("prefix", ["", "/test"])
async def test_only_the_qr_code_reader_page_may_compile_webassembly(running, prefix):
    page, text = await fetch(running, f"{prefix}/door")
    reader, _ = await fetch(running, f"{prefix}/door/reader.js")

    assert page.status == 200
    assert "unsafe" not in page.headers["Content-Security-Policy"]
    assert "worker-src 'self'" in page.headers["Content-Security-Policy"]
    assert "'wasm-unsafe-eval'" in reader.headers["Content-Security-Policy"]
    assert reader.content_type == "text/javascript"
    assert f'data-terminal="{prefix}/terminal/v1"' in text
    assert page.headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize("prefix", ["", "/test"])
async def test_the_service_worker_caches_existing_files_and_controls_only_the_door(running, prefix):
    worker, text = await fetch(running, f"{prefix}/door/service-worker.js")
    shell = json.loads(text.partition("=")[2].partition(";\n")[0])
    assert worker.headers["Service-Worker-Allowed"] == shell["page"] == f"{prefix}/door"
    assert not [url for url in shell["assets"] if "/terminal/" in url]
    for url in [shell["page"], *shell["assets"]]:
        assert (await fetch_status(running, url)) == 200


async def fetch_status(running, url):
    async with running.client.get(url) as response:
        return response.status


@pytest.mark.parametrize(("language", "direction"), [("fr", "ltr"), ("ar", "rtl")])
async def test_the_manifest_is_in_the_visitors_language(running, language, direction):
    _, text = await fetch(running, "/door/manifest.webmanifest", **{"Accept-Language": language})
    manifest = json.loads(text)
    assert (manifest["dir"], manifest["scope"]) == (direction, "/door")
    assert {icon["purpose"] for icon in manifest["icons"]} == {"any", "maskable"}
