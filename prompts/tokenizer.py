"""The tokenizer: exact, and as fast as an exact one can be had.

`tokenizers` says what is right. `fastokens` answers in its place where it gives the same ids for a
probe text and for every control token, which is tried at load; otherwise text is cut at control
tokens, where tokenisation starts afresh, and the pieces are remembered.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from hashlib import blake2b
from pathlib import Path

import msgspec
import tokenizers

from prompts.guard import ESCAPE, MARK, unguard
from prompts.memo import Memo
from prompts.vocabulary import Added, Document, bytes_of
from turns.errors import InvalidRequestError

Encode = Callable[[str], list[int]]

_MEMO_TOKENS = 4_000_000
_PIECE_TOKENS = 500_000  # as lists: 36 bytes each
_PROBE = (
    "The quick brown fox's 12345 jumps\n\n\n  over it.\tdef f(x, *y):\r\n        return x**2  \n"
    "naïve cafe\u0301 \u212b ﬁ 中文字符 かな 한국어 العربية हिन्दी ไทย 🚀👩\u200d💻 "
    "<a href='x'>{\"k\": [1.0, null]}</a> != 0x1F "
    "snake_case camelCase WE'LL I'm  … — \u00a0\u200b\u3000end   "
)


class Tokenizer:
    """Text to token ids and back, for one model folder. Safe from several threads."""

    def __init__(self, raw: bytes, *, control: Iterable[str] = (), fast: bool = True) -> None:
        """`control` names added tokens that steer the model although nothing else says so."""
        self._document = Document.parse(raw)
        self._digest = blake2b(raw, digest_size=16).digest()
        self._hf = tokenizers.Tokenizer.from_str(raw.decode())
        self._hf.no_truncation()
        self._hf.no_padding()
        named = frozenset(control)
        added = self._document.added_tokens
        self._control = {
            token.content: token for token in added if token.controls() or token.content in named
        }
        self._cut = _cutter(self._control.values())
        self._memo: Memo[str, array[int]] = Memo(_MEMO_TOKENS)
        self._pieces: Memo[tuple[str, bool], Sequence[int]] = Memo(_PIECE_TOKENS)
        self._first, self._rest = self._ordinary(raw)
        self._fast_plain: Encode | None = None
        self._whole: Encode = self._by_hf
        self.engine = "tokenizers"
        if self._segments(self.probe) == self._by_hf(self.probe):
            self._whole = self._segments
        if fast:
            self._try_fastokens(raw)

    @classmethod
    def load(cls, model_dir: Path, *, control: Iterable[str] = (), fast: bool = True) -> Tokenizer:
        """From the folder's `tokenizer.json`. `fast=False` skips what only encoding needs."""
        path = Path(model_dir) / "tokenizer.json"
        if not path.is_file():
            msg = f"{path} is missing: a model folder needs a tokenizer.json"
            raise FileNotFoundError(msg)
        return cls(path.read_bytes(), control=control, fast=fast)

    def encode(self, text: str, *, special: bool) -> list[int]:
        """The ids. With `special`, text that spells a control token becomes that token."""
        try:
            return self._whole(text) if special else list(self._plain(text, first=True))
        except (TypeError, UnicodeEncodeError):  # a lone surrogate: the libraries refuse it
            clean = text.encode("utf-8", "replace").decode()
            if clean == text:
                raise
            return self.encode(clean, special=special)

    def encode_guarded(self, text: str, *, start: bool = True) -> list[int]:
        """The ids of rendered text: what `Guard` marked is ordinary text, the rest as `special`.

        Without `start` it is the continuation of a text, behind a control token.
        """
        marked = MARK in text or ESCAPE in text
        if not marked and (start or self._rest is self._first):
            return self.encode(text, special=True)
        try:
            return self._segments(text, start=start)
        except (TypeError, UnicodeEncodeError):
            return self._segments(text.encode("utf-8", "replace").decode(), start=start)

    def encode_piece(self, text: str, *, start: bool) -> Sequence[int]:
        """As `encode_guarded`, for what stands between replies and comes again at every turn: a
        piece that was seen lately is not read again. The ids are not the caller's to change.
        """
        key = text, start
        known = self._pieces.get(key)
        if known is None:
            known = self.encode_guarded(text, start=start)
            self._pieces.put(key, known, len(known) + 64)
        return known

    def encode_text(self, text: str, *, special: bool) -> list[int]:
        """The ids of a text by itself; with `special`, what the tokenizer puts around one too."""
        return list(self._hf.encode(text, add_special_tokens=special).ids)

    def spelling(self, number: int) -> str:
        """The token as the vocabulary spells it, "" for an id that it has not."""
        return self._hf.id_to_token(number) or ""

    def decode(self, ids: Iterable[int]) -> str:
        """The text of the ids, control tokens spelled out. An unknown id is an error."""
        numbers = list(ids)
        bad = next((number for number in numbers if not 0 <= number < self.vocab_size), None)
        if bad is not None:
            msg = f"token id {bad} is outside the vocabulary of {self.vocab_size}"
            raise InvalidRequestError(msg, param="tokens")
        return self._hf.decode(numbers, skip_special_tokens=False)

    @cached_property
    def vocab_bytes(self) -> list[bytes]:
        """The bytes of every id."""
        return bytes_of(self._hf.get_vocab(with_added_tokens=True), self._document)

    @cached_property
    def special(self) -> dict[int, str]:
        """Control tokens: id to spelling."""
        return {token.id: token.content for token in self._control.values()}

    @cached_property
    def vocab_size(self) -> int:
        """One more than the greatest id."""
        vocab = self._hf.get_vocab(with_added_tokens=True)
        return max(vocab.values(), default=-1) + 1

    def id_of(self, token: str) -> int | None:
        """The id of the token that is spelled so, control or not."""
        found = self._hf.token_to_id(token)
        return None if found is None else int(found)

    @property
    def controls(self) -> re.Pattern[str]:
        """Finds control tokens that a text spells."""
        return self._cut

    @property
    def digest(self) -> bytes:
        """Tells this vocabulary from every other."""
        return self._digest

    @property
    def cache(self) -> tuple[int, int]:
        """Hits and misses of what is remembered: pieces, and segments where no engine is fast."""
        memos = (self._memo, self._pieces)
        return sum(memo.hits for memo in memos), sum(memo.misses for memo in memos)

    @property
    def probe(self) -> str:
        """A text on which engines must agree: many scripts, and every control token."""
        return _PROBE + _PROBE.join(self._control) + _PROBE

    def _by_hf(self, text: str) -> list[int]:
        return list(self._hf.encode(text, add_special_tokens=False).ids)

    def _segments(self, text: str, *, start: bool = True) -> list[int]:
        """Cut at control tokens that stand outside marks; each piece between is ordinary text."""
        ids: list[int] = []
        at = 0
        for found in self._cut.finditer(text):
            if found.start() > at:
                piece = unguard(text[at : found.start()])
                ids.extend(self._plain(piece, first=start and at == 0))
            spelled = found[0]
            token = self._control.get(spelled) or self._control[spelled.strip()]
            ids.append(token.id)
            at = found.end()
        if at < len(text):
            ids.extend(self._plain(unguard(text[at:]), first=start and at == 0))
        return ids

    def _plain(self, text: str, *, first: bool) -> Sequence[int]:
        """The ids of ordinary text, whatever it spells."""
        if self._fast_plain is not None:
            return self._fast_plain(text)
        if not first and self._rest is not self._first:
            return list(self._rest.encode(text, add_special_tokens=False).ids)
        known = self._memo.get(text)
        if known is None:
            known = array("I", self._first.encode(text, add_special_tokens=False).ids)
            self._memo.put(text, known, len(known) + 64)
        return known

    def _ordinary(self, raw: bytes) -> tuple[tokenizers.Tokenizer, tokenizers.Tokenizer]:
        """The model without control tokens: for the first piece of a text, and the rest."""
        first = tokenizers.Tokenizer(self._hf.model)
        for part in ("normalizer", "pre_tokenizer"):
            if getattr(self._hf, part) is not None:
                setattr(first, part, getattr(self._hf, part))
        _add_plain(first, self._document.added_tokens, self._control)
        if not self._document.opens_once:
            return first, first
        document = msgspec.json.decode(raw)
        document |= {"added_tokens": [], "truncation": None, "padding": None}
        settled = msgspec.json.encode(document).replace(
            b'"prepend_scheme":"first"', b'"prepend_scheme":"never"'
        )
        rest = tokenizers.Tokenizer.from_str(settled.decode())
        _add_plain(rest, self._document.added_tokens, self._control)
        return first, rest

    def _try_fastokens(self, raw: bytes) -> None:
        """Let `fastokens` answer where it is installed, reads this model and gives the same ids."""
        try:
            import fastokens  # noqa: PLC0415 -- not built for every platform
        except ImportError:
            return
        try:
            fast = fastokens.Tokenizer.from_json_str(raw.decode())
            whole = fast.encode(self.probe).ids
            plain = fast.encode_ordinary(self.probe).ids
        except (RuntimeError, TypeError, ValueError):  # a model kind that it does not know
            return
        if whole == self._by_hf(self.probe):
            self.engine = "fastokens"
            self._whole = lambda text: fast.encode(text).ids
            if plain == self._first.encode(self.probe, add_special_tokens=False).ids:
                self._fast_plain = lambda text: fast.encode_ordinary(text).ids


def _add_plain(
    tokenizer: tokenizers.Tokenizer, added: Iterable[Added], control: Mapping[str, Added]
) -> None:
    """Give the tokenizer the added tokens that are plain text, where they keep their ids."""
    for token in added:
        known = tokenizer.token_to_id(token.content)
        if token.content not in control and known == token.id:
            tokenizer.add_tokens([_library_token(token)])


def _library_token(token: Added) -> tokenizers.AddedToken:
    return tokenizers.AddedToken(
        token.content,
        single_word=token.single_word,
        lstrip=token.lstrip,
        rstrip=token.rstrip,
        normalized=token.normalized,
        special=token.special,
    )


def _cutter(tokens: Iterable[Added]) -> re.Pattern[str]:
    """Finds control tokens: the longest at the leftmost place, with the space that they swallow."""
    ordered = sorted(tokens, key=lambda token: (-len(token.content), token.content))
    return re.compile("|".join(map(_pattern, ordered)) or r"(?!)")


def _pattern(token: Added) -> str:
    spelled = re.escape(token.content)
    if token.single_word:
        spelled = rf"(?<!\w){spelled}(?!\w)"
    return (r"\s*" if token.lstrip else "") + spelled + (r"\s*" if token.rstrip else "")
