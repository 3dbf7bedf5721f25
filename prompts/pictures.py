"""Pictures on their way into a prompt: what a block holds, what it may, where it stands.

A template writes one token where a picture stands; the model reads as many as its processor makes
of the picture's size. So the prompt is spread before it is counted, hashed or sent: its ids are
those that the engine will run. Only the header of a picture is read here, its bytes are not
decoded: that is for the engine that looks at them.
"""

from __future__ import annotations

from base64 import b64decode
from binascii import Error
from collections.abc import Sequence
from hashlib import blake2b

from msgspec import Struct

from prompts.image_header import header_of
from prompts.vision.sight import Sight
from turns.errors import InvalidRequestError
from turns.frames import Picture


class ImageLimits(Struct, frozen=True):
    """What pictures a request may hold: how many, the bytes and pixels of each, the pixels of all.

    The pixels are what a picture takes in memory once it is decoded, three bytes each, however few
    bytes it came in.
    """

    most: int = 100
    most_bytes: int = 10 * 2**20
    most_pixels: int = 7680 * 4320
    all_pixels: int = 8 * 7680 * 4320


class Looked(Struct, frozen=True):
    """A picture as its header shows it; `ids` stand for it in the prompt."""

    digest: str
    media_type: str
    data: bytes
    width: int
    height: int
    ids: list[int]


class Gallery:
    """The pictures of one turn, in their order. Refusals name the picture by `where`."""

    def __init__(self, sight: Sight, limits: ImageLimits) -> None:
        self._sight = sight
        self._limits = limits
        self._pixels = 0
        self.pictures: list[Looked] = []

    @property
    def pad(self) -> int:
        return self._sight.pad

    def look(self, data: str, where: str) -> Looked:
        """Take the next picture, in base64. Raises InvalidRequestError."""
        limits = self._limits
        if len(self.pictures) >= limits.most:
            raise _refused(where, f"a request may have {limits.most} images here; send fewer")
        raw = _decoded(data, where)
        if len(raw) > limits.most_bytes:
            raise _refused(
                where,
                f"the image has {len(raw)} bytes, of {limits.most_bytes} allowed; make it smaller",
            )
        header = header_of(raw)
        if header is None:
            raise _refused(where, "this is no PNG, JPEG, GIF or WebP image, or a broken one")
        size = f"{header.width}x{header.height}"
        pixels = header.width * header.height
        self._pixels += pixels
        if pixels > limits.most_pixels:
            raise _refused(
                where,
                f"the image has {size} pixels, of {limits.most_pixels} allowed; make it smaller",
            )
        if self._pixels > limits.all_pixels:
            raise _refused(
                where,
                f"the images have over {limits.all_pixels} pixels together; make them smaller",
            )
        try:
            ids = self._sight.spread(header.width, header.height)
        except ValueError as error:
            raise _refused(where, f"the model takes no image of {size} pixels: {error}") from None
        digest = blake2b(raw, digest_size=16).hexdigest()
        looked = Looked(digest, header.media_type, raw, header.width, header.height, ids)
        self.pictures.append(looked)
        return looked


class Spreading:
    """Spreads ids that a template wrote, piece by piece; `placed` are the pictures met so far."""

    def __init__(self, pad: int, pictures: Sequence[Looked]) -> None:
        self._pad = pad
        self._pictures = pictures
        self.placed: list[Picture] = []

    def __call__(self, ids: Sequence[int], at: int) -> Sequence[int]:
        """The piece of the prompt that begins behind `at` ids, each picture at its full length."""
        out: list[int] = []
        start = 0
        for _ in range(ids.count(self._pad)):
            found = ids.index(self._pad, start)
            out += ids[start:found]
            start = found + 1
            if len(self.placed) == len(self._pictures):
                raise _misplaced(len(self._pictures))
            one = self._pictures[len(self.placed)]
            self.placed.append(
                Picture(
                    digest=one.digest,
                    media_type=one.media_type,
                    data=one.data,
                    width=one.width,
                    height=one.height,
                    at=at + len(out),
                    length=len(one.ids),
                    pad=self._pad,
                )
            )
            out += one.ids
        out += ids[start:]
        return out

    def done(self) -> tuple[Picture, ...]:
        """All pictures in their places. Raises InvalidRequestError where one was not written."""
        if len(self.placed) != len(self._pictures):
            raise _misplaced(len(self._pictures))
        return tuple(self.placed)


def _decoded(data: str, where: str) -> bytes:
    """The bytes; lines may be broken, as command line tools break them."""
    if "\n" in data:
        data = "".join(data.split())
    try:
        return b64decode(data, validate=True)
    except (Error, ValueError):
        raise _refused(where, "the image is not base64") from None


def _refused(where: str, why: str) -> InvalidRequestError:
    return InvalidRequestError(f"{where}: {why}", param=where)


def _misplaced(count: int) -> InvalidRequestError:
    return InvalidRequestError(
        f"the chat template of this model does not write each of the {count} images where it "
        "stands; send them in messages of the user alone",
        param="messages",
    )
