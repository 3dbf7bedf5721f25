"""vLLM as an engine: token ids in, token ids out, over its in-process AsyncLLM."""
