"""The process in which one PDF is read: the file on stdin, its pages as JSON on stdout.

Run by its path, so that nothing of the house is imported. A PDF is a program that a stranger wrote
for a library in C: the kernel bounds its memory and processor time, and a crash ends this alone.

Arguments: pages, characters, seconds, bytes of memory.
"""

from __future__ import annotations

import json
import resource
import sys


def main() -> None:
    pages, characters, seconds, memory = (int(word) for word in sys.argv[1:])
    import pypdfium2  # noqa: PLC0415 - its size counts before the limits are set

    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    found: list[str] = []
    try:
        document = pypdfium2.PdfDocument(sys.stdin.buffer.read())
        total = len(document)
        room = characters
        for number in range(min(total, pages)):
            page = document[number]
            text = str(page.get_textpage().get_text_bounded())[:room]
            page.close()
            found.append(text)
            room -= len(text)
            if room <= 0:
                break
    except (pypdfium2.PdfiumError, MemoryError):
        print(json.dumps({"error": "unreadable"}))  # noqa: T201 - it is the answer
        return
    print(json.dumps({"pages": found, "total": total}))  # noqa: T201 - it is the answer


if __name__ == "__main__":
    main()
