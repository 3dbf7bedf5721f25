"""Documents: files that come with a request, spelled by each API in its own way.

What is text is shown as it is; a PDF stays a `Document` until somebody has read it, which takes
longer than decoding may. Of any other kind of file nothing can be shown.
"""

from __future__ import annotations

from base64 import b64decode
from binascii import Error

from turns.blocks import Block, Document, Text

PDF = "application/pdf"
HEAD = "JVBERi"
"""`%PDF-` in base64: what a file is where its media type says nothing."""

TEXTS = ("application/json", "application/xml", "application/yaml", "application/x-yaml")
ENDINGS = (".txt", ".md", ".csv", ".json", ".xml", ".yaml", ".yml", ".html", ".log", ".py", ".toml")


def under(title: str, context: str, *texts: str) -> list[Block]:
    """Texts below what they are called and what is said of them."""
    return [Text(line) for line in (title, context, *texts) if line]


def read(media_type: str, data: str, *, title: str = "", context: str = "") -> list[Block]:
    """A file in base64 as blocks; nothing where it is of a kind that cannot be shown."""
    kind = media_type.partition(";")[0].strip().lower()
    if kind == PDF or data.startswith(HEAD):
        return [Document(PDF, data, title=title, context=context)]
    if kind.startswith("text/") or kind in TEXTS:
        text = text_of(data)
        return under(title, context, text) if text else []
    return []


def of_file(data: str, name: str) -> list[Block]:
    """The file of an OpenAI API: a `data:` URL, or bare base64 of which only the name tells."""
    head, comma, rest = data.partition(",")
    if comma and head.startswith("data:") and head.endswith(";base64"):
        return read(head[5:-7], rest, title=name)
    kind = "text/plain" if name.lower().endswith(ENDINGS) else ""
    return read(kind, data, title=name)


def text_of(data: str) -> str:
    """Base64 of UTF-8 as text, "" for what is neither."""
    try:
        return b64decode(data, validate=True).decode("utf-8-sig")
    except (Error, ValueError):
        return ""
