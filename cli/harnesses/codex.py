"""Codex: a home of its own with one provider.

The key comes from a command: only then does Codex fetch the server's catalogue of models, without
which it has no apply_patch and cuts tool output short. One connection carries a session, and brings
only what is new.
"""

from __future__ import annotations

import json

from cli.harnesses.setup import KEY, Setup, Target


def setup(target: Target) -> Setup:
    text = json.dumps  # a JSON string is a TOML string
    config = f"""\
model = {text(target.model)}
model_provider = "treadle"
check_for_update_on_startup = false

[analytics]
enabled = false

[model_providers.treadle]
name = "treadle"
base_url = {text(target.url + "/v1")}
wire_api = "responses"
supports_websockets = true
auth = {{ command = "printenv", args = ["{KEY}"] }}
"""
    return Setup(
        program="codex",
        package="@openai/codex",
        environment={"CODEX_HOME": str(target.folder)},
        files={str(target.folder / "config.toml"): config},
    )
