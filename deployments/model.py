"""From a model's settings to what the actors know of it."""

from __future__ import annotations

from pathlib import Path

import msgspec

from actors.serving import SCRIPTED, ModelSpec
from deployments import profiles
from deployments.settings import ModelSettings
from prompts.prompter import PromptSettings

ROOT = Path(__file__).resolve().parents[1]


def prompt_settings(settings: ModelSettings) -> PromptSettings:
    said = settings.prompt.model_dump()
    efforts = PromptSettings().efforts | said.pop("efforts")
    return msgspec.convert(said | {"efforts": efforts}, PromptSettings)


def model_spec(settings: ModelSettings) -> ModelSpec:
    """Folders are relative to the checkout, since a Ray worker's own directory is arbitrary."""
    folder = settings.folder
    if folder != SCRIPTED:
        folder = str(ROOT / folder)
    return ModelSpec(
        name=settings.name,
        folder=folder,
        family=settings.family,
        made=str(ROOT / ".models"),
        aliases=settings.aliases,
        display_name=settings.display_name,
        context_window=settings.context_window,
        max_output=settings.max_output,
        profile=profiles.load(settings.profile),
        dispatch=settings.dispatch,
        prompt=prompt_settings(settings),
    )
