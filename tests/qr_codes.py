"""Read QR codes from a picture."""

import zxingcpp
from PIL import Image


def qr_codes(image: Image.Image) -> list[str]:
    """Return the text of every QR code in `image`.

    Other kinds of barcode are not looked for: a reader takes stripes of ordinary text for one.
    """
    found = zxingcpp.read_barcodes(image, formats=zxingcpp.BarcodeFormat.QRCode)
    return [code.text for code in found]
