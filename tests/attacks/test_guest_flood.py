"""One guest's link cannot fill the box: what it writes for good has a measure."""

from tests.builders import a_body

FROM_OURS = {"Sec-Fetch-Site": "same-origin"}
ENOUGH = 130


async def test_ever_more_browsers_and_corrections_of_one_link_come_to_an_end(running, clock):
    _, made, _ = await running.call("POST", "/v1/reservations", json=a_body(date="2026-12-24"))
    path = made["claimUrl"].removeprefix("https://box.example")
    answers = []

    for number in range(ENOUGH):
        clock.advance(2)  # no faster than a party behind one router may tap
        form = {"name": f"Name {number % 2}"}
        async with running.client.post(path, data=form, headers=FROM_OURS) as response:
            answers.append(response.status)

    lines, claims = await running.live.database.read(
        lambda reader: [
            reader.row("SELECT count(*) FROM history WHERE actor = 'guest'")[0],
            reader.row("SELECT count(*) FROM claim")[0],
        ]
    )
    assert answers[0] == 200
    assert answers[-1] == 429
    assert lines == 100
    assert claims <= lines
    async with running.client.post(f"{path}/cancel", headers=FROM_OURS) as response:
        assert response.status == 200  # who cannot come may still say so
