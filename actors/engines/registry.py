"""Engines by kind: one entry each, imported only where it is used, since vLLM takes seconds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from actors.engines.engine import Engine
from actors.serving import ModelFolder
from turns.errors import EngineError


def _scripted(options: Mapping[str, Any], folder: ModelFolder) -> Engine:
    from actors.engines.scripted.engine import ScriptedEngine  # noqa: PLC0415 - see the module
    from actors.engines.scripted.settings import ScriptedSettings  # noqa: PLC0415
    from actors.engines.scripted.wire import native  # noqa: PLC0415

    write, encode = native(folder.tokenizer, folder.family, folder.grammar)
    return ScriptedEngine(
        _settings(ScriptedSettings, options),
        write=write,
        encode=encode,
        vocab_size=folder.tokenizer.vocab_size,
    )


def _vllm(options: Mapping[str, Any], folder: ModelFolder) -> Engine:
    from actors.engines.vllm.engine import VllmEngine  # noqa: PLC0415 - see the module
    from actors.engines.vllm.settings import VllmSettings  # noqa: PLC0415

    told: dict[str, Any] = {"model": str(folder.path)}
    reasoning = folder.grammar.reasoning
    if reasoning is not None:
        # vLLM counts a turn's thinking between two tokens; where one is spelled it cannot.
        marks = (reasoning.openers[0], reasoning.closers[0])
        if set(marks) <= set(folder.tokenizer.special.values()):
            told["thinking"] = marks
    return VllmEngine(_settings(VllmSettings, told | dict(options)))


KINDS: dict[str, Callable[[Mapping[str, Any], ModelFolder], Engine]] = {
    "scripted": _scripted,
    "vllm": _vllm,
}


def make_engine(kind: str, options: Mapping[str, Any], folder: ModelFolder) -> Engine:
    """An engine of that kind for that model; it is not started. Raises EngineError."""
    return KINDS[kind](options, folder)


def _settings(kind: type[Any], options: Mapping[str, Any]) -> Any:
    try:
        return msgspec.convert(options, kind)
    except msgspec.ValidationError as error:
        raise EngineError(f"engine options: {error}; see {kind.__name__}") from error
