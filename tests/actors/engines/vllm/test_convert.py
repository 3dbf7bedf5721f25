from __future__ import annotations

import json
from pathlib import Path

import pytest
from tokenizers import Tokenizer

np = pytest.importorskip("numpy")
pytest.importorskip("gguf", reason="gguf comes with vLLM for the CPU")
pytest.importorskip("torch", reason="torch comes with vLLM")

pytestmark = pytest.mark.vllm  # imports torch, converts the default model once


def test_unpermute_undoes_llama_cpp() -> None:
    from actors.engines.vllm.convert import unpermute  # noqa: PLC0415 needs torch

    heads, size, columns = 3, 8, 5
    rows = np.arange(heads * size * columns, dtype=np.float32).reshape(heads * size, columns)
    # As llama.cpp's converter writes them.
    stored = rows.reshape(heads, 2, size // 2, columns).swapaxes(1, 2).reshape(rows.shape)
    assert not np.array_equal(stored, rows)
    assert np.array_equal(unpermute(stored, heads), rows)


def test_names_of_the_published_checkpoints() -> None:
    from actors.engines.vllm.convert import published_name  # noqa: PLC0415 needs torch

    assert published_name("blk.3.attn_q.weight") == "model.layers.3.self_attn.q_proj.weight"
    assert published_name("token_embd.weight") == "model.embed_tokens.weight"
    with pytest.raises(ValueError, match="unknown tensor"):
        published_name("a.b.c.d.e")


def test_the_folder_holds_what_vllm_and_the_prompts_need(smollm2: Path) -> None:
    config = json.loads((smollm2 / "config.json").read_text())
    assert config["architectures"] == ["LlamaForCausalLM"]
    assert (config["vocab_size"], config["max_position_embeddings"]) == (49_152, 8192)
    assert (
        "add_generation_prompt"
        in (json.loads((smollm2 / "tokenizer_config.json").read_text())["chat_template"])
    )
    assert "Apache License" in (smollm2 / "LICENSE").read_text()


def test_the_tokenizer_is_smollms(smollm2: Path) -> None:
    tokenizer = Tokenizer.from_file(str(smollm2 / "tokenizer.json"))
    text = "<|im_start|>user\n2026 costs 15 €, naïve?  \n\tYes.<|im_end|>"
    encoded = tokenizer.encode(text)
    assert tokenizer.decode(encoded.ids, skip_special_tokens=False) == text
    assert (encoded.ids[0], encoded.ids[-1]) == (1, 2)
    assert [tokenizer.id_to_token(i) for i in tokenizer.encode("2026").ids] == list("2026")
