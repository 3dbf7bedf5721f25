"""Pictures decoded: upright, on white, and never anything but a refusal for broken bytes."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import pytest

from prompts.image_header import header_of
from tests.serving.pictures import png
from turns.errors import InvalidRequestError
from turns.frames import Picture

Image = pytest.importorskip("PIL.Image", reason="Pillow comes with vLLM")
NEAR = 60
pixels = pytest.importorskip("actors.engines.vllm.pixels")


def picture(data: bytes, *, digest: str = "", **fields: Any) -> Picture:
    header = header_of(data)
    assert header is not None
    told = {"width": header.width, "height": header.height} | fields
    return Picture(
        digest or str(hash(data)), header.media_type, data, at=0, length=1, pad=0, **told
    )


def encoded(image: Any, kind: str, **fields: Any) -> bytes:
    buffer = BytesIO()
    image.save(buffer, kind, **fields)
    return buffer.getvalue()


def half(mode: str = "RGB") -> Any:
    """Red on the left, clear or black on the right."""
    image = Image.new(mode, (40, 20))
    image.paste((255, 0, 0, 255)[: len(mode)], (0, 0, 20, 20))
    return image


def is_red(pixel: tuple[int, int, int]) -> bool:
    """As near to it as a lossy format keeps it."""
    return max(abs(255 - pixel[0]), pixel[1], pixel[2]) < NEAR


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF", "WEBP"])
def test_the_header_says_what_the_decoder_makes(kind: str) -> None:
    data = encoded(half(), kind)
    header = header_of(data)
    assert header is not None
    made = pixels.decoded(picture(data))
    assert (made.mode, made.size) == ("RGB", (header.width, header.height)) == ("RGB", (40, 20))
    assert is_red(made.getpixel((2, 10)))


def test_what_is_clear_is_white() -> None:
    made = pixels.decoded(picture(encoded(half("RGBA"), "PNG")))
    assert [made.getpixel((x, 5)) for x in (2, 38)] == [(255, 0, 0), (255, 255, 255)]


def test_a_turned_photo_is_shown_upright() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # its left side is up
    data = encoded(half(), "JPEG", exif=exif)
    made = pixels.decoded(picture(data))
    header = header_of(data)
    assert header is not None
    assert made.size == (header.width, header.height) == (20, 40)
    assert [is_red(made.getpixel((10, y))) for y in (2, 38)] == [True, False]


@pytest.mark.parametrize(
    ("data", "fields"),
    [
        pytest.param(png(64, 64)[:60], {}, id="cut-off"),
        pytest.param(png(64, 64)[:33], {}, id="header-alone"),
        pytest.param(png(64, 64).replace(b"IDAT", b"IDAX"), {}, id="no-data"),
        pytest.param(b"\xff\xd8\xff\xc0\0\x0b\x08\0\x10\0\x10\x01", {}, id="jpeg-frame-alone"),
        pytest.param(b"GIF89a\x10\0\x10\0", {}, id="gif-head-alone"),
        pytest.param(png(64, 64), {"width": 32}, id="other-size-than-it-said"),
    ],
)
def test_what_cannot_be_read_is_refused_by_its_number(data: bytes, fields: dict[str, int]) -> None:
    readable = pixels.Readable()
    good = picture(png(8, 8))
    for _ in range(2):  # nothing is remembered of it
        with pytest.raises(InvalidRequestError, match="image 2 of the request cannot be read"):
            readable.check((good, picture(data, **fields)))
    readable.check((good,))


def test_a_picture_that_was_read_is_not_read_again() -> None:
    readable = pixels.Readable()
    good = picture(png(8, 8), digest="d")
    readable.check((good,))
    readable.check((picture(png(8, 8)[:33], digest="d"),))
