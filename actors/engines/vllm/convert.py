"""A quantised GGUF file of a llama model to a model folder that vLLM loads: bf16 safetensors.

Needs torch, gguf and safetensors, which come with vLLM. transformers reads such files but cannot
write them back unpacked. llama.cpp stores the rows of q and k interleaved for its own rotary
embedding; here they are put back into the order of the published checkpoints.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import torch
from safetensors.torch import save_file
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

CONTROL = 3  # gguf's TokenType.CONTROL
NAMES = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
TOP = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}


def published_name(name: str) -> str:
    """`blk.3.attn_q.weight` is `model.layers.3.self_attn.q_proj.weight`."""
    match name.split("."):
        case ["blk", layer, part, end]:
            return f"model.layers.{layer}.{NAMES[part]}.{end}"
        case [part, end]:
            return f"{TOP[part]}.{end}"
        case _:
            raise ValueError(f"unknown tensor {name} in the GGUF file")


def unpermute(rows: np.ndarray[Any, Any], heads: int) -> np.ndarray[Any, Any]:
    """Rows of q or k from (pair, half) order per head back to (half, pair) order."""
    columns = rows.shape[1]
    return rows.reshape(heads, -1, 2, columns).swapaxes(1, 2).reshape(-1, columns)


def convert(
    source: Path,
    folder: Path,
    progress: Callable[[int, int], None],
    *,
    sampling: Mapping[str, float],
) -> None:
    """Write the model of `source` into `folder`; `progress(done, all)` counts tensors.

    `sampling` becomes the model's default sampling.
    """
    reader = gguf.GGUFReader(source)
    meta = {name: field.contents() for name, field in reader.fields.items()}
    if meta["general.architecture"] != "llama" or meta["tokenizer.ggml.pre"] != "smollm":
        raise ValueError(f"{source.name}: not a llama model with SmolLM's tokenizer")
    heads = {
        "attn_q": meta["llama.attention.head_count"],
        "attn_k": meta["llama.attention.head_count_kv"],
    }
    tensors: dict[str, torch.Tensor] = {}
    for done, tensor in enumerate(reader.tensors, 1):
        values = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        for part, count in heads.items():
            if f".{part}." in tensor.name:
                values = unpermute(values, count)
        kept = torch.from_numpy(np.array(values, order="C")).to(torch.bfloat16)
        tensors[published_name(tensor.name)] = kept
        progress(done, len(reader.tensors))
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "model.safetensors").chmod(0o644)  # it is born private; the rest is not
    tied = "lm_head.weight" not in tensors
    write(folder / "config.json", model_config(meta, tied=tied))
    ends = {"eos_token_id": meta["tokenizer.ggml.eos_token_id"]}
    write(folder / "generation_config.json", {**ends, "do_sample": True, **sampling})
    tokenizer(meta).save(str(folder / "tokenizer.json"))
    write(folder / "tokenizer_config.json", tokenizer_config(meta))


def write(path: Path, value: dict[str, Any]) -> None:
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def model_config(meta: dict[str, Any], *, tied: bool) -> dict[str, Any]:
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "torch_dtype": "bfloat16",
        "vocab_size": meta["llama.vocab_size"],
        "hidden_size": meta["llama.embedding_length"],
        "intermediate_size": meta["llama.feed_forward_length"],
        "num_hidden_layers": meta["llama.block_count"],
        "num_attention_heads": meta["llama.attention.head_count"],
        "num_key_value_heads": meta["llama.attention.head_count_kv"],
        "max_position_embeddings": meta["llama.context_length"],
        "rope_theta": meta["llama.rope.freq_base"],
        "rms_norm_eps": round(meta["llama.attention.layer_norm_rms_epsilon"], 12),
        "hidden_act": "silu",
        "tie_word_embeddings": tied,
        "bos_token_id": meta["tokenizer.ggml.bos_token_id"],
        "eos_token_id": meta["tokenizer.ggml.eos_token_id"],
        "pad_token_id": meta["tokenizer.ggml.padding_token_id"],
    }


def tokenizer(meta: dict[str, Any]) -> Tokenizer:
    """The byte-level BPE of SmolLM: digits stand alone, no space is put in front."""
    tokens: list[str] = meta["tokenizer.ggml.tokens"]
    merges = [tuple(merge.split(" ")) for merge in meta["tokenizer.ggml.merges"]]
    made = Tokenizer(models.BPE(dict(zip(tokens, range(len(tokens)), strict=True)), merges))
    made.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(False)]
    )
    made.decoder = decoders.ByteLevel()
    kinds = zip(tokens, meta["tokenizer.ggml.token_type"], strict=True)
    made.add_special_tokens([AddedToken(t, special=True) for t, kind in kinds if kind == CONTROL])
    return made


def tokenizer_config(meta: dict[str, Any]) -> dict[str, Any]:
    tokens = meta["tokenizer.ggml.tokens"]
    named = {"bos": "bos", "eos": "eos", "pad": "padding", "unk": "unknown"}
    return {
        f"{name}_token": tokens[meta[f"tokenizer.ggml.{key}_token_id"]]
        for name, key in named.items()
    } | {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "add_prefix_space": False,
        "clean_up_tokenization_spaces": False,
        "model_max_length": meta["llama.context_length"],
        "chat_template": meta["tokenizer.chat_template"],
    }
