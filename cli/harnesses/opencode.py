"""OpenCode: a config file of its own, named by `OPENCODE_CONFIG`, over Chat Completions."""

from __future__ import annotations

import json

from cli.harnesses.setup import KEY, Setup, Target

WINDOW, OUTPUT = 131_072, 8_192
"""What OpenCode is told where the server does not say."""


def setup(target: Target) -> Setup:
    file = target.folder / "opencode.json"
    limit = {"context": target.window or WINDOW, "output": target.max_output or OUTPUT}
    model = {"name": target.model, "tool_call": True, "reasoning": True, "limit": limit}
    config = {
        "$schema": "https://opencode.ai/config.json",
        "autoupdate": False,
        "share": "disabled",
        "model": f"treadle/{target.model}",
        "small_model": f"treadle/{target.model}",
        "provider": {
            "treadle": {
                "npm": "@ai-sdk/openai-compatible",
                "name": "treadle",
                "options": {"baseURL": f"{target.url}/v1", "apiKey": f"{{env:{KEY}}}"},
                "models": {target.model: model},
            }
        },
    }
    return Setup(
        program="opencode",
        package="opencode-ai",
        environment={
            "OPENCODE_CONFIG": str(file),
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
        },
        files={str(file): json.dumps(config, indent=2) + "\n"},
    )
