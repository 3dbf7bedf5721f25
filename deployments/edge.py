"""The edge of an ingress: its ASGI application, made of the settings and nothing of Ray's."""

from __future__ import annotations

from actors.edge import AsgiApp, Edge
from actors.ingress import Ingress
from actors.pages import pages
from deployments.settings import AppSettings


def edge(settings: AppSettings, ingress: Ingress) -> AsgiApp:
    """What an HTTP server runs for this ingress."""
    return Edge(ingress, pages(ingress))
