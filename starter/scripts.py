"""How a script of one's own ends: with a true exit code, and one line where nothing could be done."""

import asyncio
import os
import sys
from collections.abc import Callable, Coroutine
from typing import Any, NoReturn

from temporalio.service import RPCError, RPCStatusCode


def finish(main: Callable[..., Coroutine[Any, Any, None]]) -> NoReturn:
    """Run `main` with the command line's arguments, then end the process: with 0, or with 1 and one line on stderr.

    It ends at once: at a normal exit the native runtime of SDK 1.35 sometimes aborts, and falsifies the code.
    """
    code = 0
    try:
        work = main(*sys.argv[1:])
    except TypeError:
        sys.exit(f"error: other arguments are needed: {(main.__globals__['__doc__'] or '').strip()}")
    try:
        asyncio.run(work)
    except KeyboardInterrupt:
        code = 130
    except Exception as error:  # noqa: BLE001 - the last line before the user
        sys.stderr.write(f"error: {_words(error)}\n")
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _words(error: Exception) -> str:
    said = (str(error).strip().splitlines() or [type(error).__name__])[0]
    if not isinstance(error, RPCError) or error.status is not RPCStatusCode.NOT_FOUND:
        return said
    if "already completed" in said:
        return (
            "the workflow has ended; `citeloop status` shows how, `citeloop retry` takes up what can be taken up again"
        )
    return f"there is no such workflow ({said}); the id is article/TENANT/ARTICLE, as the Temporal UI shows it"
