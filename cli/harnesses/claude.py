"""Claude Code: environment variables alone; its own settings and sessions stay where they are.

It takes an unknown model for one of a million tokens, so it is told the window. Its side calls go
to the same model, and nothing but turns leaves the machine.
"""

from __future__ import annotations

from cli.harnesses.setup import KEY, Setup, Target


def setup(target: Target) -> Setup:
    environment = {
        "ANTHROPIC_BASE_URL": target.url,
        "ANTHROPIC_AUTH_TOKEN": f"${{{KEY}}}",
        "ANTHROPIC_MODEL": target.model,
        "ANTHROPIC_DEFAULT_HAIKU_MODEL": target.model,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_TELEMETRY": "1",
        "DISABLE_ERROR_REPORTING": "1",
    }
    if target.window:
        environment["CLAUDE_CODE_MAX_CONTEXT_TOKENS"] = str(target.window)
    if target.max_output:
        environment["CLAUDE_CODE_MAX_OUTPUT_TOKENS"] = str(target.max_output)
    return Setup(
        program="claude",
        package="@anthropic-ai/claude-code",
        environment=environment,
        arguments=("--model", target.model),
    )
