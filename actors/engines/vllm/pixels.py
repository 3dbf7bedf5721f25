"""Pictures decoded: whether one can be read at all, and what a model is shown of it.

Reading one takes milliseconds, so it is done in a thread, and only for pictures that are new here:
a conversation sends its pictures again with every turn.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from io import BytesIO

from PIL import Image, ImageOps

from turns.errors import InvalidRequestError
from turns.frames import Picture

FORMATS = ("PNG", "JPEG", "GIF", "WEBP")
KNOWN = 65_536
"""Digests of readable pictures that are remembered."""

_WHITE = (255, 255, 255)
_ORIENTATION, _TURNED = 0x0112, range(5, 9)
"""Exif's tag, and the values of it for which width and height change places."""


class Readable:
    """Refuses pictures that cannot be read. Safe from several threads: one may be read twice."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, None] = OrderedDict()

    def check(self, pictures: Iterable[Picture]) -> None:
        """Raises InvalidRequestError, saying which."""
        for number, picture in enumerate(pictures, 1):
            if picture.digest in self._known:
                continue
            try:
                decoded(picture)
            except Exception as error:  # whatever a decoder makes of broken bytes
                msg = f"image {number} of the request cannot be read: {error}"
                raise InvalidRequestError(msg, param="messages") from error
            self._known[picture.digest] = None
            while len(self._known) > KNOWN:
                self._known.popitem(last=False)


def decoded(picture: Picture) -> Image.Image:
    """The picture in RGB, upright, on white. Raises whatever Pillow does, and ValueError for one
    that is not of the size that its header was read to say.
    """
    image: Image.Image = Image.open(BytesIO(picture.data), formats=FORMATS)
    turned = picture.media_type == "image/jpeg" and image.getexif().get(_ORIENTATION) in _TURNED
    size = image.size[::-1] if turned else image.size
    if size != (picture.width, picture.height):
        raise ValueError(f"it has {size} pixels, not {(picture.width, picture.height)}")
    image.load()
    if picture.media_type == "image/jpeg":
        image = ImageOps.exif_transpose(image)
    if image.mode != "RGB" and image.has_transparency_data:
        image = image.convert("RGBA")
        white = Image.new("RGB", image.size, _WHITE)
        white.paste(image, mask=image.getchannel("A"))
        return white
    return image.convert("RGB")
