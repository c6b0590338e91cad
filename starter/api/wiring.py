"""What the API's requests work with; made once by the app, handed to each of them."""

from dataclasses import dataclass
from datetime import timedelta

from fastapi import Request
from temporalio.client import Client

from citeloop.channels.outside import Outside
from citeloop.store.database import Database
from starter.commands import PATIENCE


@dataclass(frozen=True)
class Wiring:
    database: Database
    client: Client
    outside: Outside
    patience: timedelta = PATIENCE


def wiring(request: Request) -> Wiring:
    made = request.app.state.wiring
    assert isinstance(made, Wiring)
    return made
