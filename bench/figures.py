"""What the bench shows: a table a scenario, the targets and whether they are met, and a plot without a library."""

from collections.abc import Callable, Mapping
from html import escape
from typing import Any

from rich.console import Console
from rich.table import Table

from bench.referee import Json

_ONE_CALL, _SIX, _SHARE = 1.05, 1.10, 0.6
_LIMITED, _SUCCESS = 0.001, 0.995
_RSS_MB, _GROWTH = 220, 0.05
_BACK_S, _LAST_S = 3, 15
_USED, _RATIO = 0.1, (2.7, 3.3)
_AHEAD, _NEVER = 40, 10**6
"""Twenty normal articles take turns with the urgent ones; as many again may be on their way before them."""

PLOTTED = ("generate", "six", "half")
"""Scenarios that have a physical limit."""

_WHOLE_ARTICLES = (
    ("wall s", "wall_s"), ("limit s", "limit_s"), ("wall ÷ limit", "wall_over_limit"), ("429s", "limited"),
    ("success", "success"), ("residual", "residual"), ("double posts", "duplicate_posts"),
    ("paid twice", "bought_twice"), ("CPU-ms an article", "cpu_ms_per_article"),
)  # fmt: skip
_COLUMNS: Mapping[str, tuple[tuple[str, str], ...]] = {
    "generate": (
        ("wall s", "wall_s"), ("limit s", "limit_s"), ("wall ÷ limit", "wall_over_limit"), ("429s", "limited"),
        ("success", "success"), ("residual", "residual"), ("paid twice", "bought_twice"),
        ("CPU-ms an article", "cpu_ms_per_article"), ("RSS MB", "rss_mb"),
    ),
    "six": _WHOLE_ARTICLES,
    "half": _WHOLE_ARTICLES,
    "unlimited": (
        ("articles/s", "articles_per_second"), ("bare/s", "bare_per_second"), ("share", "share_of_bare"),
        ("CPU-ms an article", "cpu_ms_per_article"),
    ),
    "kill": (
        ("lost", "lost"), ("double posts", "duplicate_posts"), ("on the wire", "on_the_wire"),
        ("paid twice", "bought_twice"), ("429s", "limited"), ("service back s", "service_back_s"),
        ("silence s", "longest_silence_s"), ("last in flight back s", "last_in_flight_back_s"),
    ),
    "live": (("changes", "changes"), ("hold", "hold"), ("failed", "failed")),
    "fairness": (
        ("late tenant s", "late_tenant_s"), ("big one used", "big_tenant_used"), ("3:1 gave", "ratio"),
        ("urgent ones ahead of normal", "urgent_before_normal_finished"),
    ),
}  # fmt: skip


def show(console: Console, scenario: str, found: Json) -> None:
    made = Table(title=scenario, title_justify="left", box=None, header_style="bold")
    made.add_column("")
    for heading, _ in _COLUMNS[scenario]:
        made.add_column(heading, justify="right", overflow="fold")
    for name, row in found.items():
        if name != "memory":
            made.add_row(name, *(_cell(row.get(key)) for _, key in _COLUMNS[scenario]))
    console.print(made)
    for text, met in judged(scenario, found):
        console.print(f"  {'[green]met[/]' if met else '[red]MISSED[/]'}  {escape(text)}")


def judged(scenario: str, found: Json) -> list[tuple[str, bool]]:
    """The targets and whether they are met; what was not measured is not judged."""
    targets: list[tuple[str, bool]] = []
    if not any(name.startswith("citeloop") for name in found):
        return targets
    own: Callable[[str], Json] = lambda name: found.get(name, {})  # noqa: E731
    match scenario:
        case "generate":
            for name in ("citeloop", "citeloop-2"):
                targets += _near(name, own(name), _ONE_CALL)
            memory = own("memory")
            targets.append(("worker RSS ≤ 220 MB", memory["worker_rss_mb"] <= _RSS_MB))
            targets.append(("its growth over the second half ≤ 5 %", memory["worker_rss_growth"] <= _GROWTH))
        case "six" | "half":
            targets += _near("citeloop", own("citeloop"), _SIX)
            targets.append(("no double post", own("citeloop")["duplicate_posts"] == 0))
            if scenario == "six" and "dbos" in found:
                targets.append(("wall below DBOS", own("citeloop")["wall_s"] < own("dbos")["wall_s"]))
        case "unlimited":
            targets.append(("at least 0.6 of a bare workflow", own("citeloop")["share_of_bare"] >= _SHARE))
        case "kill":
            for name in ("citeloop-worker", "citeloop-temporal"):
                targets += _survived(name, own(name))
        case "live":
            live, hold = own("citeloop"), own("citeloop")["hold"]
            targets.append(("the rate follows within 2 s", live["follows_within_2_s"]))
            targets.append(("nothing fails", live["failed"] == 0))
            targets.append(("one 429 stops all calls for 10 s", not hold["calls_during_hold"] and hold["limited"] == 1))
        case _:
            fair = own("citeloop")
            targets.append(("the late tenant is done early", (fair.get("big_tenant_used") or 1) <= _USED))
            targets.append(("3:1 within 10 %", _RATIO[0] <= fair["ratio"] <= _RATIO[1]))
            targets.append(
                ("top priority does not starve", (fair["urgent_before_normal_finished"] or _NEVER) <= _AHEAD)
            )
    return targets


def _near(name: str, run: Json, most: float) -> list[tuple[str, bool]]:
    return [
        (f"{name}: wall ≤ {most} × limit", run["wall_over_limit"] <= most),
        (f"{name}: 429s ≤ 0.1 %, no bucket overdrawn", run["limited_share"] <= _LIMITED and run["above_bucket"] == 0),
        (f"{name}: success ≥ 99.5 %, residual 0", run["success"] >= _SUCCESS and run["residual"] == 0),
    ]


def _survived(name: str, run: Json) -> list[tuple[str, bool]]:
    back, last = run["service_back_s"], run["last_in_flight_back_s"]
    return [
        (f"{name}: 0 lost, 0 double posts", run["lost"] == 0 and run["duplicate_posts"] == 0),
        (f"{name}: service back ≤ 3 s after the restart", back is not None and back <= _BACK_S),
        (f"{name}: last in flight back ≤ 15 s", last is not None and last <= _LAST_S),
    ]


def summary(found: Mapping[str, Json]) -> Json:
    """The last line: the issue's figures by contender, then everything."""
    out: Json = {}
    for scenario, rows in found.items():
        for name, row in rows.items():
            if name != "memory":
                out.setdefault(name, {})[scenario] = row
    missed = [
        f"{scenario}: {text}" for scenario, rows in found.items() for text, met in judged(scenario, rows) if not met
    ]
    return {"missed": missed, "memory": found.get("generate", {}).get("memory"), "contenders": out}


def plot(found: Mapping[str, Json]) -> str:
    """An SVG of wall ÷ limit by contender, one group of bars a scenario, with the limit as a line at 1."""
    groups = [
        (
            scenario,
            [(name, row["wall_over_limit"]) for name, row in found[scenario].items() if row.get("wall_over_limit")],
        )
        for scenario in PLOTTED
        if scenario in found
    ]
    rows = sum(len(bars) + 2 for _, bars in groups)
    most = max([1.2, *(value for _, bars in groups for _, value in bars)])
    scale, top, parts = 460 / most, 20, []
    for scenario, bars in groups:
        parts.append(f'<text x="10" y="{top + 14}" font-weight="bold">{scenario}: wall ÷ physical limit</text>')
        top += 24
        for name, value in bars:
            fill = "#2b6cb0" if name.startswith("citeloop") else "#a0aec0"
            parts.append(f'<text x="10" y="{top + 14}">{escape(name)}</text>')
            parts.append(f'<rect x="140" y="{top + 3}" width="{value * scale:.1f}" height="14" fill="{fill}"/>')
            parts.append(f'<text x="{145 + value * scale:.1f}" y="{top + 14}">{value:.3f}</text>')
            top += 22
        top += 20
    line = 140 + scale
    parts.append(
        f'<line x1="{line:.1f}" x2="{line:.1f}" y1="30" y2="{top - 10}" stroke="#c53030" stroke-dasharray="4"/>'
    )
    size = f'width="680" height="{max(top, 22 * rows)}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="12">'
        f'<rect width="100%" height="100%" fill="white"/>{"".join(parts)}</svg>\n'
    )


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, dict):
        return "\n".join(f"{name} {_short(one)}" for name, one in value.items())
    return _short(value)


def _short(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {one}" for name, one in value.items())
    return f"{value:g}" if isinstance(value, float) else str(value)
