"""Running the real `citeloop` command as a process."""

import asyncio
import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
BRAND = str(ROOT / "examples" / "milvus" / "brand.toml")
KEYWORDS = str(ROOT / "examples" / "milvus" / "keywords.csv")


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


async def citeloop(*arguments: str, home: Path, environ: Mapping[str, str] | None = None) -> Ran:
    """As a user's shell would; the environment holds nothing of ours but the home folder and `environ`."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("CITELOOP_", "TEMPORAL_"))}
    process = await asyncio.create_subprocess_exec(
        str(Path(sys.executable).parent / "citeloop"),
        *arguments,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**clean, "CITELOOP_HOME": str(home), **(environ or {})},
        cwd=ROOT,
    )
    out, err = await process.communicate()
    assert process.returncode is not None
    return Ran(process.returncode, out.decode(), err.decode())
