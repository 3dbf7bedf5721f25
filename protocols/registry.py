"""The three APIs by name: all that an ingress needs to know of them."""

from __future__ import annotations

from protocols.anthropic.api import Messages
from protocols.chat.api import Chat
from protocols.protocol import Encoder, Protocol
from protocols.responses.api import Responses
from turns.turn import Api

APIS: dict[Api, Protocol] = {"messages": Messages(), "responses": Responses(), "chat": Chat()}

__all__ = ["APIS", "Encoder", "Protocol"]
