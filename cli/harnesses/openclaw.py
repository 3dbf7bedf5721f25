"""OpenClaw: a state folder of its own with one provider, over Chat Completions."""

from __future__ import annotations

import json

from cli.harnesses.setup import KEY, Setup, Target

WINDOW, OUTPUT = 131_072, 8_192
"""What OpenClaw is told where the server does not say."""


def setup(target: Target) -> Setup:
    model = {
        "id": target.model,
        "name": target.model,
        "reasoning": True,
        "input": ["text"],
        "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0},
        "contextWindow": target.window or WINDOW,
        "maxTokens": target.max_output or OUTPUT,
    }
    provider = {
        "baseUrl": f"{target.url}/v1",
        "apiKey": f"${{{KEY}}}",
        "api": "openai-completions",
        "models": [model],
    }
    config = {
        "models": {"mode": "replace", "providers": {"treadle": provider}},
        "agents": {
            "defaults": {
                "model": {"primary": f"treadle/{target.model}"},
                "workspace": str(target.folder / "workspace"),
            }
        },
        "update": {"checkOnStart": False},
    }
    return Setup(
        program="openclaw",
        package="openclaw",
        environment={
            "OPENCLAW_STATE_DIR": str(target.folder),
            "OPENCLAW_DISABLE_TELEMETRY": "1",
            "OPENCLAW_NO_UPDATE_CHECK": "1",
        },
        arguments=("agent", "--local", "--agent", "main"),
        files={str(target.folder / "openclaw.json"): json.dumps(config, indent=2) + "\n"},
        needs="needs Node 24.16 or newer; add --message 'what it shall do'",
    )
