"""docs/api.md, typed into a shell as it stands, ends with everything published and measured."""

import asyncio
import re
import shutil
from pathlib import Path

import pytest

from starter import simulated
from starter.stack import Stack
from tests.starter.cli import citeloop

DOCUMENT = simulated.ROOT / "docs" / "api.md"


@pytest.mark.skipif(not (shutil.which("curl") and shutil.which("jq")), reason="the page is for curl and jq")
@pytest.mark.timeout(180)
async def test_the_page_works_as_it_stands(stack: Stack, tmp_path: Path) -> None:
    made = await citeloop("key", "create", "--role", "operator", "--name", "reader", home=stack.home)
    typed = re.findall(r"^```bash\n(.*?)^```$", DOCUMENT.read_text(), flags=re.DOTALL | re.MULTILINE)
    assert len(typed) == 9
    process = await asyncio.create_subprocess_exec(
        "bash", "-eu", "-c", "\n".join(typed),
        cwd=tmp_path,
        env={"PATH": "/usr/local/bin:/usr/bin:/bin", "API": stack.api_url or "", "KEY": made.out.strip()},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    out, _ = await process.communicate()
    told = out.decode()
    assert process.returncode == 0, told
    assert '{"name":"autumn","counts":{"measured":3},"total":3}' in told
    assert told.count('"site":"hook","state":"published"') == 3
    assert '{"window":"after","name":"mention rate","value":' in told
