"""PDF files made by hand: one line of text a page."""

from __future__ import annotations

from base64 import b64encode

FONTS = "/Resources << /Font << /F1 3 0 R >> >>"


def pdf(*lines: str) -> bytes:
    """A PDF with these lines, each on its page."""
    count = len(lines)
    kids = " ".join(f"{4 + 2 * n} 0 R" for n in range(count))
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {count} >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for number, line in enumerate(lines):
        drawn = f"BT /F1 12 Tf 20 100 Td ({line}) Tj ET" if line else ""
        objects += [
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 400 200] {FONTS} /Contents {5 + 2 * number} 0 R >>",
            f"<< /Length {len(drawn)} >>\nstream\n{drawn}\nendstream",
        ]
    out, starts = "%PDF-1.4\n", []
    for number, body in enumerate(objects, 1):
        starts.append(len(out))
        out += f"{number} 0 obj\n{body}\nendobj\n"
    table = "".join(f"{start:010d} 00000 n \n" for start in starts)
    size = len(objects) + 1
    trailer = f"trailer\n<< /Size {size} /Root 1 0 R >>\nstartxref\n{len(out)}\n%%EOF\n"
    return f"{out}xref\n0 {size}\n0000000000 65535 f \n{table}{trailer}".encode()


def coded(data: bytes) -> str:
    return b64encode(data).decode()
