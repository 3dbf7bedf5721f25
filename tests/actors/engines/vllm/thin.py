"""The shape of the thinnest decoder that vLLM takes on a CPU, for models of random weights."""

from __future__ import annotations

THIN = {
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 32,
    "max_position_embeddings": 32_768,
    "tie_word_embeddings": True,
}
