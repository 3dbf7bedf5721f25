"""Configs: found by name or path, and checked whole before a cluster is touched.

Everything that a start would trip over and that a file can tell is a `Problem`: where it stands,
what is wrong, what to write instead. Nothing here starts Ray or reads a model's weights.
"""

from __future__ import annotations

import difflib
import typing
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import yaml
from pydantic import BaseModel, ValidationError

from actors.serving import SCRIPTED
from deployments.exposure import exposed
from deployments.settings import AppSettings, ModelSettings
from deployments.tool_settings import ToolSettings
from families import registry
from turns.errors import TreadleError

ROOT = Path(__file__).resolve().parents[1]
MODELS, TOOLS = "deployments.app:build", "deployments.tools:build"
BUILDERS: dict[str, type[BaseModel]] = {MODELS: AppSettings, TOOLS: ToolSettings}
Place = tuple[str | int, ...]


class Problem(msgspec.Struct, frozen=True):
    """One thing that is wrong. `path` as `applications.0.args.models.0.family`."""

    path: str
    message: str
    suggestion: str = ""


def known() -> list[str]:
    return sorted(path.stem for path in (ROOT / "clusters").glob("*.yaml"))


def find(name: str) -> Path:
    """The config of that name in `clusters/`, or at that path. Raises FileNotFoundError."""
    for path in (ROOT / "clusters" / f"{name}.yaml", Path(name)):
        if path.is_file():
            return path.resolve()
    near = difflib.get_close_matches(name, known(), n=1)
    meant = f"; did you mean {near[0]}?" if near else ""
    raise FileNotFoundError(
        f"no config {name!r}; there is {', '.join(known())}, or give a path{meant}"
    )


def problems(path: Path) -> list[Problem]:
    """All that is wrong with the config in that file; none where it can be started."""
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        return [Problem("", f"not YAML: {error}", "mind the indentation and the quotes")]
    if not isinstance(content, dict):
        return [Problem("", "the config is empty or no mapping", "begin from clusters/cpu.yaml")]
    for key, what in ELSEWHERE.items():
        if key in content and "applications" not in content:
            said = "a config says what is served: check clusters/b200.yaml, for example"
            return [Problem("", f"this is {what}, not a config", said)]
    return [*_rays(content), *_applications(content)]


ELSEWHERE = {"cluster_name": "a cluster for `ray up`", "apiVersion": "a manifest for `kubectl`"}
"""Other files of a cluster, by a key that they have."""


def _rays(content: dict[str, Any]) -> Iterator[Problem]:
    """What Ray Serve itself would say."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Ray's own, about its own
        from ray.serve.schema import ServeDeploySchema  # noqa: PLC0415 - Ray takes seconds

    try:
        ServeDeploySchema.model_validate(content)
    except ValidationError as error:
        yield from _spelled(error, (), ServeDeploySchema)
    allowed = list(ServeDeploySchema.model_fields)
    for name in content:
        if name not in allowed:
            yield Problem(str(name), "Ray Serve knows no such key", _near(str(name), allowed))


def _applications(content: dict[str, Any]) -> Iterator[Problem]:
    applications = content.get("applications")
    if not isinstance(applications, list):
        return
    for number, application in enumerate(applications):
        if not isinstance(application, dict):
            continue
        where: Place = ("applications", number)
        builder = str(application.get("import_path", ""))
        if builder not in BUILDERS:
            near = _near(builder, list(BUILDERS))
            said = near or f"treadle's own are {', '.join(BUILDERS)}"
            yield Problem(_dotted((*where, "import_path")), f"unknown builder {builder!r}", said)
            continue
        where = (*where, "args")
        try:
            settings = BUILDERS[builder].model_validate(application.get("args") or {})
        except ValidationError as error:
            yield from _spelled(error, where, BUILDERS[builder])
            continue
        if isinstance(settings, AppSettings):
            yield from _models(settings, where)
            http = content.get("http_options") or {}
            if isinstance(http, dict):  # else Ray's schema has said so
                yield from _exposure(http, settings, where)
        elif isinstance(settings, ToolSettings):
            yield from _tools(settings, where)


def _models(settings: AppSettings, where: Place) -> Iterator[Problem]:
    for number, model in enumerate(settings.models):
        at = (*where, "models", number)
        if model.folder != SCRIPTED and not (ROOT / model.folder).is_dir():
            yield Problem(
                _dotted((*at, "folder")),
                f"there is no folder {model.folder}",
                "name an ordinary model folder (config.json, tokenizer.json, weights), by its "
                f"path or from {ROOT} on",
            )
        if model.family != "auto":
            try:
                registry.get(model.family)
            except TreadleError as error:
                said = "or leave `family` out: auto finds it by the folder"
                yield Problem(_dotted((*at, "family")), error.message, said)
        yield from _engine(model, (*at, "engine", "options"))


def _engine(model: ModelSettings, at: Place) -> Iterator[Problem]:
    """The engine's own options, read as the engine will read them."""
    from actors.engines.scripted.settings import ScriptedSettings  # noqa: PLC0415 - one is used
    from actors.engines.vllm.settings import VllmSettings  # noqa: PLC0415

    kind: type[Any] = {"scripted": ScriptedSettings, "vllm": VllmSettings}[model.engine.kind]
    told = {} if kind is ScriptedSettings else {"model": model.folder}
    try:
        msgspec.convert(told | model.engine.options, kind)
    except msgspec.ValidationError as error:
        fields = list(kind.__struct_fields__)
        odd = [name for name in model.engine.options if name not in fields]
        said = _near(odd[0], fields) if odd else ""
        yield Problem(_dotted((*at, *odd[:1])), str(error), said or f"see {kind.__name__}")
    scenario = model.engine.options.get("scenario")
    if model.engine.kind == "scripted" and scenario and not (ROOT / str(scenario)).is_file():
        yield Problem(_dotted((*at, "scenario")), f"there is no file {scenario}")


def _exposure(http: Mapping[str, Any], settings: AppSettings, where: Place) -> Iterator[Problem]:
    host = str(http.get("host", "0.0.0.0"))  # noqa: S104 what Serve does where nothing is said
    trouble = exposed(host, settings.access)
    if trouble:
        said = "set access.keys to required, or http_options.host to 127.0.0.1"
        yield Problem(_dotted((*where, "access", "keys")), trouble, said)


def _tools(settings: ToolSettings, where: Place) -> Iterator[Problem]:
    try:
        from deployments.tool_gateway import declared  # noqa: PLC0415 - the extra
    except ImportError as error:
        yield Problem(_dotted(where), f"streaming tools need the extra `tools` ({error})")
        return
    try:
        declared(settings)
    except (ValueError, OSError) as error:
        yield Problem(_dotted((*where, "tools")), str(error))


def _spelled(error: ValidationError, where: Place, root: type[BaseModel]) -> Iterator[Problem]:
    errors = error.errors(include_url=False, include_input=False)
    places = [one["loc"] for one in errors]
    for one, place in zip(errors, places, strict=True):
        if any(other[: len(place)] == place and other != place for other in places):
            continue  # a list "too short" for want of its item that is wrong
        suggestion = ""
        if one["type"] == "extra_forbidden":
            suggestion = _near(str(place[-1]), _fields(root, place[:-1]))
        elif one["type"] == "missing":
            suggestion = f"add `{place[-1]}`"
        elif one["type"] == "literal_error":
            suggestion = f"one of {one['ctx']['expected']}"
        yield Problem(_dotted((*where, *place)), one["msg"], suggestion)


def _fields(root: type[BaseModel], place: Place) -> list[str]:
    """The keys that may stand at a place."""
    found: type[BaseModel] | None = root
    for step in place:
        if isinstance(step, str) and found is not None and step in found.model_fields:
            found = _model_in(found.model_fields[step].annotation)
    return list(found.model_fields) if found is not None else []


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """The settings class in an annotation: itself, optional, or the items of a sequence."""
    inside = typing.get_args(annotation)
    if not inside:
        known = isinstance(annotation, type) and issubclass(annotation, BaseModel)
        return annotation if known else None
    inner = (_model_in(one) for one in inside)
    return next((one for one in inner if one is not None), None)


def _near(name: str, allowed: list[str]) -> str:
    near = difflib.get_close_matches(name, allowed, n=1)
    if near:
        return f"did you mean `{near[0]}`?"
    return f"there is {', '.join(allowed)}" if allowed else ""


def _dotted(place: Place) -> str:
    return ".".join(str(step) for step in place)


def told(path: Path) -> tuple[int, str]:
    """The port that a config serves on, and the store that it names; as they would be unsaid."""
    content = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    port = int((content.get("http_options") or {}).get("port", 8000))
    stores = [(one.get("args") or {}).get("store") or {} for one in content["applications"]]
    return port, next((str(one["redis"]) for one in stores if "redis" in one), "")
