"""Pictures in prompts: spread where the template wrote them, named by their bytes, bounded."""

from __future__ import annotations

import json
import re
import shutil
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from families import registry
from families.family import Family
from prompts.pictures import ImageLimits
from prompts.prompter import Prompter
from prompts.vision.scripted import PAD
from tests.prompts.models import KEEPING
from tests.prompts.test_image_header import png
from tests.prompts.turns_made import assistant, call, turn, user
from turns.blocks import Image, Text, ToolResult
from turns.errors import InvalidRequestError
from turns.events import Usage
from turns.reply import Reply


def image(width: int = 280, height: int = 140, *, salt: bytes = b"") -> Image:
    """A picture's header: nothing more of it is read."""
    return Image("image/png", b64encode(png(width, height) + salt).decode())


@pytest.fixture(scope="session")
def seeing(loaded: Callable[[Family], Prompter]) -> Prompter:
    return loaded(registry.get("gemma4"))


@pytest.fixture(scope="session")
def remembering(loaded: Callable[[Family], Prompter]) -> Prompter:
    """A family that sees and keeps all that was said."""
    return loaded(replace(KEEPING, name="seeing", sees_images=True))


def test_each_picture_stands_at_its_full_length_where_it_was_sent(seeing: Prompter) -> None:
    asked = turn(
        user("a", image(280, 140), "b"), assistant(call()), user(ToolResult("c1", (image(28, 29),)))
    )
    prompt = seeing.prepare(asked)
    first, second = prompt.pictures
    assert (first.length, second.length) == (50, 2)
    before = seeing.tokenizer.decode(prompt.ids[: first.at])
    between = seeing.tokenizer.decode(prompt.ids[first.at + 50 : second.at])
    assert before.endswith("a<|vision_start|>")
    assert between.startswith("<|vision_end|>b")
    pads = [at for at, number in enumerate(prompt.ids) if number == first.pad]
    own = [*range(first.at, first.at + 50), *range(second.at, second.at + 2)]
    assert pads == own


def test_the_lines_of_base64_may_be_broken(seeing: Prompter) -> None:
    whole = image(280, 140, salt=b"pixels" * 40)
    wrapped = replace(whole, data="\n".join(re.findall(".{1,76}", whole.data)) + "\n")
    first, second = (seeing.prepare(turn(user("a", one))) for one in (whole, wrapped))
    assert first == second


def test_text_that_spells_the_placeholder_is_text(seeing: Prompter) -> None:
    prompt = seeing.prepare(turn(user(f"x {PAD} y", image(28, 28), f"<|vision_start|>{PAD}")))
    (only,) = prompt.pictures
    assert prompt.ids.count(only.pad) == 1
    assert prompt.ids[only.at] == only.pad


def test_what_the_model_said_is_never_a_picture(remembering: Prompter) -> None:
    """A reply whose remembered tokens hold the placeholder stands as it was generated."""
    asked = turn(user("look", image()))
    plan = remembering.plan(asked)
    prompt = remembering.finish(plan)
    pad, stop = prompt.pictures[0].pad, prompt.stop_ids[0]
    said = [*remembering.tokenizer.encode("A dot.", special=False), pad, stop]

    found = remembering.entries(
        plan, prompt, Reply((Text("A dot."),), stop="end", usage=Usage()), said
    )
    following = turn(user("look", image()), assistant("A dot."), user("and?", image(56, 28)))
    again = remembering.finish(remembering.plan(following), found)
    assert again.spliced == 1
    assert again.ids[: len(prompt.ids) + len(said)] == [*prompt.ids, *said]
    assert [one.length for one in again.pictures] == [50, 2]
    other = turn(user("look", image(salt=b"!")), assistant("A dot."), user("and?"))
    assert not set(remembering.plan(other).keys) & set(found), "another picture was answered"


@pytest.mark.parametrize(
    ("blocks", "says"),
    [
        pytest.param((Image("image/png", "AAAA"),), "no PNG, JPEG, GIF or WebP", id="no-picture"),
        pytest.param((Image("image/png", "%%"),), "not base64", id="not-base64"),
        pytest.param((Image(url="http://x/y.png"),), "not fetched from URLs", id="url"),
        pytest.param((image(20_000, 20_000),), "20000x20000 pixels", id="bomb"),
        pytest.param((image(salt=b"x" * 4096),), "bytes, of 2048 allowed", id="bytes"),
        pytest.param((image(500, 500), image(501, 500)), "pixels together", id="all-pixels"),
        pytest.param((image(), image(), image(), image()), "may have 3 images", id="too-many"),
    ],
)
def test_a_picture_that_may_not_be_is_refused_by_its_place(
    seeing: Prompter, blocks: tuple[Image, ...], says: str
) -> None:
    limits = ImageLimits(most=3, most_bytes=2048, most_pixels=10**6, all_pixels=500_000)
    seeing = Prompter(
        seeing.tokenizer,
        {name: voice.template for name, voice in seeing._voices.items()},
        seeing.family,
        replace(seeing.settings, images=limits),
        sight=seeing.sight,
    )
    with pytest.raises(InvalidRequestError, match=says) as caught:
        seeing.prepare(turn(user("hi"), user("look", *blocks)))
    assert caught.value.param == f"messages.1.content.{len(blocks)}"


QWEN = {
    "architectures": ["Qwen3VLForConditionalGeneration"],
    "model_type": "qwen3_vl",
    "vision_config": {"patch_size": 16},
}
SIZE = {"patch_size": 16, "merge_size": 2, "size": {"shortest_edge": 65_536, "longest_edge": 10**6}}


@pytest.fixture
def qwen_folder(seeing: Prompter, folder: Callable[[Family], Path], tmp_path: Path) -> Path:
    """A folder that says of itself what Qwen3-VL's does."""
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(folder(seeing.family) / name, tmp_path / name)
    said = QWEN | {"image_token_id": seeing.tokenizer.id_of(PAD)}
    (tmp_path / "config.json").write_text(json.dumps(said))
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(SIZE))
    return tmp_path


def also(file: Path, fields: dict[str, object]) -> None:
    file.write_text(json.dumps(json.loads(file.read_text()) | fields))


@pytest.mark.parametrize(
    ("processor", "tokens"),
    [
        pytest.param({}, 15 * 8, id="its-own-size"),
        pytest.param({"max_pixels": 65_536, "min_pixels": 1024}, 11 * 5, id="old-spelling"),
        pytest.param(
            {"size": {"shortest_edge": 10**6, "longest_edge": 10**7}}, 45 * 23, id="grown"
        ),
    ],
)
def test_a_qwen_is_shown_a_picture_at_about_its_size(
    qwen_folder: Path, processor: dict[str, object], tokens: int
) -> None:
    also(qwen_folder / "preprocessor_config.json", processor)
    prompter = Prompter.load(qwen_folder, registry.get("gemma4"))
    (one,) = prompter.prepare(turn(user(image(480, 240)))).pictures
    assert one.length == tokens


@pytest.mark.parametrize(
    "config",
    [
        pytest.param({"vision_config": None}, id="text-alone"),
        pytest.param({"model_type": "newer_vl"}, id="unknown-kind"),
    ],
)
def test_whether_a_model_sees_is_written_in_its_folder(
    qwen_folder: Path, config: dict[str, object]
) -> None:
    also(qwen_folder / "config.json", config)
    prompter = Prompter.load(qwen_folder, registry.get("gemma4"))
    assert prompter.sight is None
    with pytest.raises(InvalidRequestError, match="does not see images"):
        prompter.prepare(turn(user(image(480, 240))))


def test_a_thin_picture_is_refused_by_a_model_that_takes_none(qwen_folder: Path) -> None:
    prompter = Prompter.load(qwen_folder, registry.get("gemma4"))
    shown = ToolResult("c1", (image(2010, 10),))
    with pytest.raises(InvalidRequestError, match="200 times") as caught:
        prompter.prepare(turn(user("x"), assistant(call()), user(shown)))
    assert caught.value.param == "messages.2.content.0"
