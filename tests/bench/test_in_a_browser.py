"""The parts of the bench that need a browser still run: what is seldom run breaks unseen."""

from tests.bench import door_app, portal


async def test_the_camera_is_timed_to_the_green(tmp_path, monkeypatch):
    monkeypatch.setattr(door_app, "HOURS", (18,))

    waits = await door_app.measure(tmp_path)

    assert len(waits) >= 5
    assert min(waits) > 0


async def test_the_evening_board_is_timed(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(portal, "PAGES", 7)
    monkeypatch.setattr(portal, "SCANS", 2)

    await portal.main(tmp_path)

    assert capsys.readouterr().out.count(": median ") == 3
