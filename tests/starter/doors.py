"""The three doors through which a person speaks to one article, each as a process of its own."""

import asyncio
import json
import os
import sys
from collections.abc import Sequence
from enum import StrEnum
from typing import Protocol

from citeloop.models import ids
from starter.embedded.temporal import temporal_binary
from tests.installation import Installation
from tests.starter.cli import ROOT, citeloop


class Word(StrEnum):
    PAUSE = "pause"
    RESUME = "resume"
    CANCEL = "cancel"
    APPROVE = "approve"
    SEND_BACK = "send_back"
    REJECT = "reject"
    PRIORITISE = "prioritise"
    RETRY = "retry"


class Door(Protocol):
    async def say(self, word: Word, article_id: str, text: str = "") -> None:
        """text: the reason, the notes or the priority, where the word takes one."""


class CommandLine:
    def __init__(self, installation: Installation) -> None:
        self._home = installation.home

    async def say(self, word: Word, article_id: str, text: str = "") -> None:
        rest = {
            Word.PRIORITISE: (text,),
            Word.PAUSE: ("--reason", text),
            Word.CANCEL: ("--reason", text),
        }.get(word, ("--notes", text) if text else ())
        command = "priority" if word is Word.PRIORITISE else word.replace("_", "-")
        ran = await citeloop(command, article_id, *rest, "--json", home=self._home)
        assert ran.code == 0, ran.err
        assert (ran.json["id"], ran.json["answered"]) == (article_id, True)


class Script:
    """The three lines of examples/."""

    def __init__(self, installation: Installation) -> None:
        self._installation = installation

    async def say(self, word: Word, article_id: str, text: str = "") -> None:
        by = ("Li Na",) if word in {Word.APPROVE, Word.SEND_BACK, Word.REJECT} else ()
        told = (text,) if text and word is not Word.PAUSE else ()
        workflow_id = ids.workflow_id(self._installation.tenant.id, article_id)
        argv = (sys.executable, str(ROOT / "examples" / f"{word}.py"), workflow_id, *by, *told)
        await _ran(argv, CITELOOP_HOME=str(self._installation.home))


class Signal:
    """What the Temporal UI and the `temporal` command send."""

    def __init__(self, installation: Installation) -> None:
        self._installation = installation

    async def say(self, word: Word, article_id: str, text: str = "") -> None:
        argument: dict[str, object] = {"notes": text} if text else {}
        if word is Word.PRIORITISE:
            argument = {"priority": int(text)}
        elif word in {Word.PAUSE, Word.CANCEL} and text:
            argument = {"reason": text}
        workflow_id = ids.workflow_id(self._installation.tenant.id, article_id)
        argv = (
            *(str(temporal_binary()), "workflow", "signal"),
            *("--address", self._installation.stack.temporal_address, "--workflow-id", workflow_id),
            *("--name", word, "--input", json.dumps(argument)),
        )
        await _ran(argv)


async def _ran(argv: Sequence[str], **environ: str) -> None:
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("CITELOOP_", "TEMPORAL_"))}
    process = await asyncio.create_subprocess_exec(
        *argv,
        cwd=ROOT,
        env={**clean, **environ},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    assert process.returncode == 0, output.decode()
