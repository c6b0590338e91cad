"""Renews the screenshots beside it from the running product: `.venv/bin/python docs/pictures/make.py`, about 3 minutes.

It runs `citeloop demo --keep` in a temporary folder, in a terminal of tmux, and looks at the Temporal UI with a
headless Chromium. Needs both, and a font with Chinese characters; on Debian:
`apt-get install --no-install-recommends chromium tmux fonts-dejavu-core fonts-noto-cjk`.
"""

import base64
import io
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

from PIL import Image
from rich.cells import cell_len
from rich.console import Console
from rich.terminal_theme import SVG_EXPORT_THEME
from rich.text import Text

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BIN = Path(sys.executable).parent
HOME = ".citeloop/demo"
COLUMNS, LINES = 150, 60
WAITS_FOR_A_PERSON = "向量数据库和全文检索怎么配合"
TABLE_COLUMNS = ("Status", "CiteLoopStage", "CiteLoopState", "CiteLoopChannel", "CiteLoopPriority", "Workflow ID")
SCREEN = """<!doctype html><meta charset="utf-8"><style>
body { margin: 0; background: #292929; color: #c5c8c6; width: max-content }
p { margin: 0; padding: 10px; text-align: center; font: bold 14px sans-serif }
pre { margin: 0; padding: 0 14px 14px; font: 13px/18px "DejaVu Sans Mono", monospace }
i { display: inline-block; font-style: normal; text-align: center } .one { width: 1ch } .two { width: 2ch }
</style>"""


class Terminal:
    """A tmux session of our own in `folder`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._name = f"citeloop-pictures-{os.getpid()}"

    def start(self, command: str) -> None:
        environ = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}"}
        size = ("-x", str(COLUMNS), "-y", str(LINES))
        argv = ("tmux", "-L", self._name, "new-session", "-d", "-c", str(self._folder), *size, f"{command}; sleep 600")
        subprocess.run(argv, env=environ, check=True)  # noqa: S603

    def text(self, *, colours: bool = False) -> str:
        return self._do("capture-pane", "-p", *(("-e",) if colours else ())).rstrip()

    def end(self) -> None:
        self._do("kill-server")

    def _do(self, *words: str) -> str:
        argv = ("tmux", "-L", self._name, *words)
        return subprocess.run(argv, check=True, capture_output=True, text=True).stdout  # noqa: S603


class Browser:
    """Chromium, spoken to over a pair of pipes in its DevTools protocol."""

    def __init__(self, folder: Path) -> None:
        (theirs_in, ours_out), (ours_in, theirs_out) = os.pipe(), os.pipe()
        flags = (
            "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
            "--disable-component-update --disable-sync --hide-scrollbars --remote-debugging-pipe"
        )
        argv = f"exec chromium {flags} --user-data-dir={shlex.quote(str(folder))} about:blank"
        self._process = subprocess.Popen(  # noqa: S602 - the shell puts the pipes where Chromium looks for them
            f"{argv} 3<&{theirs_in} 4>&{theirs_out}",
            shell=True,
            pass_fds=(theirs_in, theirs_out),
            stderr=subprocess.DEVNULL,
        )
        self._out, self._in = os.fdopen(ours_out, "wb", 0), os.fdopen(ours_in, "rb")
        self._number, self._session = 0, None
        page = next(one for one in self.call("Target.getTargets")["targetInfos"] if one["type"] == "page")
        self._session = self.call("Target.attachToTarget", targetId=page["targetId"], flatten=True)["sessionId"]

    def call(self, method: str, **params: object) -> Any:
        self._number += 1
        asked = {"id": self._number, "method": method, "params": params}
        if self._session is not None:
            asked["sessionId"] = self._session
        self._out.write(json.dumps(asked).encode() + b"\0")
        while True:
            said = bytearray()
            while (byte := self._in.read(1)) != b"\0":
                said += byte
            answer = json.loads(said)
            if answer.get("id") == self._number:
                return answer["result"]

    def js(self, expression: str) -> Any:
        return self.call("Runtime.evaluate", expression=expression, returnByValue=True)["result"].get("value")

    def go(self, url: str, *, shows: str = "") -> None:
        """Until the page shows these words, and a moment longer."""
        self.call("Page.navigate", url=url)
        _until(lambda: shows in (self.js("document.body ? document.body.innerText : ''") or ""), url)
        time.sleep(4)

    def picture(self, name: str, width: int, height: int) -> None:
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        time.sleep(1)
        png = base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])
        file = HERE / f"{name}.png"
        shown = Image.open(io.BytesIO(png)).convert("RGB")
        palette = shown.quantize(method=Image.Quantize.MAXCOVERAGE, kmeans=3, dither=Image.Dither.NONE)
        palette.save(file, optimize=True)
        sys.stdout.write(f"{file.name}: {file.stat().st_size // 1000} kB\n")

    def end(self) -> None:
        self._process.terminate()
        self._process.wait(10)


def screen(browser: Browser, folder: Path, name: str, title: str, ansi: str) -> None:
    """A terminal's text as a picture; every character keeps to its cells, whatever its font."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO())
    console.print(Text.from_ansi(ansi), soft_wrap=True)
    code = console.export_html(theme=SVG_EXPORT_THEME, code_format="{code}", inline_styles=True)
    cells = re.sub(
        r"[^\x00-\x7f]", lambda one: f'<i class="{("one", "two")[cell_len(one[0]) - 1]}">{one[0]}</i>', code.rstrip()
    )
    page = folder / f"{name}.html"
    page.write_text(f"{SCREEN}<p>{title}</p><pre>{cells}</pre>")
    browser.go(page.as_uri())
    size = browser.js("[document.body.offsetWidth, document.body.offsetHeight]")
    browser.picture(name, *size)


def citeloop(folder: Path, *words: str) -> str:
    argv = (str(BIN / "citeloop"), "--home", HOME, "--tenant", "demo", *words)
    environ = {**os.environ, "FORCE_COLOR": "1", "COLUMNS": str(COLUMNS)}
    return subprocess.run(argv, cwd=folder, env=environ, check=True, stdout=subprocess.PIPE, text=True).stdout  # noqa: S603


def main() -> None:
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        terminal, browser = Terminal(folder), Browser(folder / "chromium")
        terminal.start("citeloop demo --keep")
        try:
            pictures(folder, terminal, browser)
        finally:
            browser.end()
            citeloop(folder, "down")
            terminal.end()


def pictures(folder: Path, terminal: Terminal, browser: Browser) -> None:
    _until(lambda: "keywords submitted" in terminal.text(), "the campaign")
    ui = json.loads((folder / HOME / "endpoints.json").read_text())["ui"]
    workflows = f"{ui}/namespaces/default/workflows"
    browser.go(workflows, shows="Workflows")
    columns = json.dumps({"default": [{"label": label} for label in TABLE_COLUMNS]})
    browser.js(f"localStorage.setItem('namespace-workflow-table-columns', {json.dumps(columns)})")
    _until(lambda: _count(folder, "published") > 1, "a published article")
    running = _from(terminal.text(colours=True), " articles: ")
    of_articles = quote("WorkflowType='Article' AND ExecutionStatus!='ContinuedAsNew'")
    browser.go(f"{workflows}?query={of_articles}", shows="CiteLoopStage")
    browser.picture("temporal-list", 1280, 760)
    screen(browser, folder, "terminal-watch", "citeloop watch", running)

    _until(lambda: "The stack stays up" in terminal.text(), "the demo's end")
    ended = _from(terminal.text(colours=True), "attempts").partition("Temporal UI, while")[0].rstrip()
    screen(browser, folder, "terminal-demo", "make demo", ended)

    brand = str(ROOT / "examples" / "milvus" / "brand.toml")
    citeloop(folder, "submit", WAITS_FOR_A_PERSON, "--brand", brand, "--review", "human")
    _until(lambda: _count(folder, "review") > 0, "an article that waits for a person")
    link = citeloop(folder, "open", WAITS_FOR_A_PERSON).strip()
    browser.go(link, shows="User Metadata")
    run = browser.js("location.href").rpartition("/")[0]
    browser.go(f"{run}/user-metadata", shows="Current Details")
    browser.picture("temporal-article", 1280, 1060)
    browser.go(f"{run}/timeline", shows="reviewing.judge")
    browser.picture("temporal-timeline", 1280, 1130)
    screen(browser, folder, "terminal-trace", "citeloop trace", citeloop(folder, "trace", WAITS_FOR_A_PERSON).rstrip())


def _count(folder: Path, state: str) -> int:
    try:
        return len(json.loads(citeloop(folder, "status", "--state", state, "--json")))
    except subprocess.CalledProcessError:
        return 0


def _from(text: str, words: str) -> str:
    """From the first line with these words on."""
    lines = text.splitlines()
    return "\n".join(lines[next(n for n, line in enumerate(lines) if words in line) :])


def _until(done: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + 240
    while not done():
        if time.monotonic() > deadline:
            raise SystemExit(f"error: waited in vain for {what}")
        time.sleep(0.5)


if __name__ == "__main__":
    main()
