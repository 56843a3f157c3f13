"""The code reader, the light and the sound: what breaks is said, and comes back by itself."""

from appliance.actions.offer_pairing import offer_pairing
from tests.browser.accessibility import violations
from tests.browser.films import film

NO_WORKER = """() => {
  window.missing = true;
  window.workers = 0;
  const Made = Worker;
  window.Worker = class extends Made {
    constructor(url) {
      super(window.missing ? url.replace("reader.js", "no-reader.js") : url);
      window.workers += 1;
    }
  };
}"""
MUTE_WORKER = """() => {
  const nothing = URL.createObjectURL(new Blob([""], { type: "text/javascript" }));
  const Made = Worker;
  window.Worker = class extends Made { constructor() { super(nothing); } };
}"""
WITH_A_TORCH = """
  const { getUserMedia } = MediaDevices.prototype;
  MediaDevices.prototype.getUserMedia = async function (...wish) {
    const stream = await getUserMedia.apply(this, wish);
    const [track] = stream.getVideoTracks();
    window.torch = false;
    track.getCapabilities = () => ({ torch: true });
    track.applyConstraints = async ({ advanced: [{ torch }] }) => void (window.torch = torch);
    return stream;
  };
"""
HEAR = """
  window.tones = 0;
  const { start } = OscillatorNode.prototype;
  OscillatorNode.prototype.start = function (...when) {
    window.tones += 1;
    start.apply(this, when);
  };
  const Made = AudioContext;
  window.AudioContext = class extends Made {
    constructor(...what) { super(...what); window.ears = this; }
  };
"""


async def paired(door, phone):
    """The phone becomes a terminal."""
    offered = await door.environment.database.write(offer_pairing, "Porte 1", "override")
    await phone.pair(offered.secret)


async def test_a_reader_that_does_not_load_is_said_above_the_picture_and_tried_with_rests(
    door, tmp_path
):
    guest = await door.guest()
    seen = film(tmp_path / "late.mjpeg", [await door.pass_of(guest)])
    phone = await door.phone(video=seen)
    page = phone.page
    await page.evaluate(NO_WORKER)

    await page.click("#start")
    await page.wait_for_selector("#misread")
    await page.wait_for_timeout(3000)

    assert await violations(phone.page) == []
    assert await page.is_visible("#video")
    assert await page.is_hidden("#aim")
    assert 2 <= await page.evaluate("workers") <= 4
    await page.evaluate("missing = false")
    assert await phone.result() == "checked_in"
    await page.click("#next")
    assert await page.is_hidden("#misread")
    assert await page.is_visible("#aim")


async def test_a_reader_that_never_answers_is_said_too(door, tmp_path):
    phone = await door.phone(video=film(tmp_path / "nothing.mjpeg", []))
    await phone.page.evaluate(MUTE_WORKER)

    await phone.page.click("#start")

    await phone.page.wait_for_selector("#misread", timeout=15_000)


async def test_a_page_from_before_gets_its_reader_without_the_box(door):
    await door.guest()
    phone = await door.phone()
    await phone.page.wait_for_function("() => navigator.serviceWorker.controller")
    await door.stop()

    status = await phone.page.evaluate("fetch('/door/reader.js?v=old').then((r) => r.status)")

    assert status == 200


async def test_the_light_is_on_again_after_the_lock_screen(door, tmp_path):
    phone = await door.unpaired(video=film(tmp_path / "nothing.mjpeg", []))
    await phone.page.add_init_script(WITH_A_TORCH)
    await paired(door, phone)
    page = phone.page
    await page.click("#start")
    await page.click("#torch")
    await page.wait_for_function("() => window.torch")

    for state in ("hidden", "visible"):
        await page.evaluate(
            """(state) => {
              Object.defineProperty(document, "visibilityState",
                { configurable: true, get: () => state });
              document.dispatchEvent(new Event("visibilitychange"));
            }""",
            state,
        )

    await page.wait_for_function("() => window.torch")
    assert await page.get_attribute("#torch", "aria-pressed") == "true"
    await page.click("#torch")
    assert await page.evaluate("window.torch") is False
    assert await page.get_attribute("#torch", "aria-pressed") == "false"


async def test_the_sound_is_back_with_the_next_verdict_after_a_call(door):
    text = await door.pass_of(await door.guest())
    phone = await door.unpaired()
    await phone.page.add_init_script(HEAR)
    await paired(door, phone)
    await phone.page.evaluate("ears.suspend()")

    await phone.scan(text)

    await phone.page.wait_for_function("() => tones > 0")
    assert phone.complaints == []
