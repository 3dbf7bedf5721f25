"""Qwen Code: environment variables, and the arguments that choose the kind of provider."""

from __future__ import annotations

from cli.harnesses.setup import KEY, Setup, Target


def setup(target: Target) -> Setup:
    return Setup(
        program="qwen",
        package="@qwen-code/qwen-code",
        environment={
            "OPENAI_BASE_URL": f"{target.url}/v1",
            "OPENAI_API_KEY": f"${{{KEY}}}",
            "OPENAI_MODEL": target.model,
            "QWEN_TELEMETRY_ENABLED": "false",
            "QWEN_CODE_DISABLE_AUTO_UPDATE": "1",
        },
        arguments=("--auth-type", "openai", "-m", target.model),
        needs="needs Node 22 or newer",
    )
