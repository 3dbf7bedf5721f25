"""A model folder that needs no model and no network: real tokenizer, template and stop tokens.

The scripted engine and the tests serve from it. Its byte-level BPE is trained, in about a second,
on the sources and documents that every Python carries: the same Python gives the same tokens.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sysconfig
import tempfile
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path

import msgspec
import tokenizers
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, trainers
from tokenizers.pre_tokenizers import ByteLevel, Sequence, Split

from families.family import Family
from prompts.guard import Guard
from prompts.spelling import Spelling
from prompts.template import shipped, shipped_for
from prompts.vision import scripted

VERSION = 3
"""Raise it when anything here changes what is written."""

_STAMP = "treadle.json"
_VOCABULARY = 16_384
_CHARACTERS = 2_000_000
_CONTEXT = 131_072
_WORDS = (  # how Qwen cuts text before merging
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_OFF = (False, "none", 0)  # a low effort is not off
_CONTROL = (
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "<tool_call>",
    "</tool_call>",
    "<tool_response>",
    "</tool_response>",
    "<think>",
    "</think>",
)


def scripted_folder(path: Path, family: Family) -> Path:
    """Make `path` the scripted model folder of the family, unless it already is; returns it.

    Several processes may do so at once. Raises `FileExistsError` for a folder that is not ours.
    """
    path = Path(path)
    stamp = _stamp(family)
    if _read(path / _STAMP) == stamp:
        return path
    if path.exists() and any(path.iterdir()) and not (path / _STAMP).is_file():
        msg = f"{path} is not empty and not a scripted model folder: choose another path"
        raise FileExistsError(msg)
    path.parent.mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
    try:
        _write(made, family, stamp)
        made.chmod(0o755)
        _replace(made, path, stamp)
    finally:
        shutil.rmtree(made, ignore_errors=True)
    return path


def train(texts: Iterator[str], *, vocabulary: int, control: tuple[str, ...]) -> Tokenizer:
    """A byte-level BPE tokenizer in the manner of Qwen, with these control tokens at its end."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = Sequence(
        [
            Split(Regex(_WORDS), "isolated"),
            ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        initial_alphabet=sorted(ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    _control(tokenizer, control)
    return tokenizer


@lru_cache(maxsize=1)
def _base() -> str:
    """The tokenizer that all families share, before their control tokens; made once a process."""
    return str(train(library(), vocabulary=_VOCABULARY, control=()).to_str())


def _control(tokenizer: Tokenizer, tokens: Iterable[str]) -> None:
    tokenizer.add_tokens(
        [AddedToken(token, special=token.startswith("<|"), normalized=False) for token in tokens]
    )


def library(characters: int = _CHARACTERS) -> Iterator[str]:
    """Text that Python brings along, English first, up to so many characters."""
    home = Path(sysconfig.get_path("stdlib"))
    left = characters
    for file in [home / "pydoc_data" / "topics.py", *sorted(home.glob("*.py"))]:
        if left <= 0:
            return
        if file.is_file():
            text = file.read_text(encoding="utf-8", errors="ignore")[:left]
            left -= len(text)
            yield text


def _write(folder: Path, family: Family, stamp: str) -> None:
    seen = scripted.TOKENS if family.sees_images else ()
    named = (*_CONTROL, *family.special_tokens, *family.stop_tokens, *seen)
    control = tuple(dict.fromkeys(named))
    tokenizer = Tokenizer.from_str(_base())
    _control(tokenizer, control)
    tokenizer.save(str(folder / "tokenizer.json"))
    end = family.stop_tokens[0] if family.stop_tokens else "<|im_end|>"
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": None,
        "eos_token": end,
        "pad_token": "<|endoftext|>",
        "model_max_length": family.context_window or _CONTEXT,
        "chat_template": _template(family),
    }
    model = {
        "architectures": list(family.architectures[:1]),
        "model_type": scripted.MODEL_TYPE,
        "vocab_size": _VOCABULARY + len(control),
        "max_position_embeddings": family.context_window or _CONTEXT,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=1, ensure_ascii=False))
    (folder / "config.json").write_text(json.dumps(model, indent=1))
    (folder / _STAMP).write_text(stamp)


def _template(family: Family) -> str:
    """The family's template if one is shipped, else the plain one, with a switch for thinking."""
    own = shipped_for(family)
    if own is not None:
        return own
    plain = shipped("plain") or ""
    scheme = family.thinking
    closed = Spelling(family, Guard(())).thought("")
    written = f"{{{{- {closed!r} }}}}"
    if scheme.system_off:
        asked = f"messages and {scheme.system_off!r} in (messages[0].content | string)"
        return f"{plain}{{%- if add_generation_prompt and {asked} %}}{written}{{%- endif %}}\n"
    off = {name: value for name, value in scheme.off.items() if value in _OFF}
    if not off:
        return plain
    asked = " and ".join(f"{name} is defined and {name} == {off[name]!r}" for name in off)
    return f"{plain}{{%- if add_generation_prompt and {asked} %}}{written}{{%- endif %}}\n"


def _stamp(family: Family) -> str:
    """All that the folder is made of, as a digest."""
    source = msgspec.json.encode(
        (
            VERSION,
            tokenizers.__version__,
            sysconfig.get_python_version(),
            msgspec.to_builtins(family),
            _template(family),
        )
    )
    digest = hashlib.sha256(source).hexdigest()
    return json.dumps({"kind": "scripted model folder", "family": family.name, "digest": digest})


def _read(file: Path) -> str:
    return file.read_text() if file.is_file() else ""


def _replace(made: Path, path: Path, stamp: str) -> None:
    """Put the new folder in place of an old one; another process may have been quicker."""
    if path.exists():
        old = made.with_name(made.name + ".old")
        path.replace(old)
        shutil.rmtree(old, ignore_errors=True)
    try:
        made.replace(path)
    except OSError:
        if _read(path / _STAMP) != stamp:
            raise
