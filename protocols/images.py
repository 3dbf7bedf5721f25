"""Images as the OpenAI APIs spell them: one URL that may hold the picture itself."""

from __future__ import annotations

from turns.blocks import Image


def from_url(url: str) -> Image:
    """A `data:` URL becomes its media type and base64 data, any other stays a URL."""
    head, comma, data = url.partition(",")
    if comma and head.startswith("data:") and head.endswith(";base64"):
        return Image(media_type=head[5:-7].split(";")[0], data=data)
    return Image(url=url)


def to_url(image: Image) -> str:
    """The way back."""
    return image.url or f"data:{image.media_type};base64,{image.data}"
