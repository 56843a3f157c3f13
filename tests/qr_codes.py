"""Read QR codes from a picture."""

import zxingcpp
from PIL import Image


def qr_codes(image: Image.Image) -> list[str]:
    """Return the text of every QR code in `image`.

    Other barcodes are ignored, because the reader sees some in stripes of ordinary text.
    """
    found = zxingcpp.read_barcodes(image, formats=zxingcpp.BarcodeFormat.QRCode)
    return [code.text for code in found]
