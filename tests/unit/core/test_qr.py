import re

import zxingcpp
from PIL import Image, ImageDraw

from appliance.core.qr import qr_svg

PASS = "SVC1" + "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567" * 4 + "ABCDEFG"


def drawn(svg: str, scale: int = 8) -> Image.Image:
    """Draw the picture from the horizontal lines of the path."""
    side = int(re.search(r'viewBox="0 0 (\d+) \1"', svg).group(1))
    image = Image.new("L", (side * scale, side * scale), 255)
    brush, x, y = ImageDraw.Draw(image), 0, -0.5  # the lines run through the middle of a module
    dark = re.search(r'stroke="#000" d="([^"]+)"', svg).group(1)
    for dx, dy, length in re.findall(r"[Mm](-?\d+) ([\d.]+)h(\d+)", dark):
        x, y = x + int(dx), y + float(dy)
        corner = ((x + int(length)) * scale - 1, (y + 1) * scale - 1)
        brush.rectangle([(x * scale, y * scale), corner], fill=0)
        x += int(length)
    return image


def test_the_qr_code_in_the_svg_decodes_to_the_text_of_the_pass():
    read = zxingcpp.read_barcodes(drawn(qr_svg(PASS)))

    assert [code.text for code in read] == [PASS]
    assert read[0].ec_level == "M"


def test_the_qr_code_of_a_pass_is_version_6_with_a_white_margin_of_4_modules():
    svg = qr_svg(PASS)

    assert 'viewBox="0 0 49 49"' in svg
    assert 'fill="#fff" d="M0 0h49v49h-49z"' in svg
    assert drawn(svg, 1).point(lambda p: 255 - p).getbbox() == (4, 4, 45, 45)
