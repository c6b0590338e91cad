"""The tables of articles, as a terminal of ordinary width shows them."""

import io
from datetime import UTC, datetime

from rich.console import Console
from rich.table import Table

from citeloop.models.money import Money
from citeloop.models.plan import Kind, Stage, State
from citeloop.models.work import PublicationState
from citeloop.store.repositories.articles import ArticleView
from starter.report import article_table
from starter.watching import id_table, pauses, stage_table

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def _parked(reason: str, page: str = "") -> ArticleView:
    return ArticleView(
        id="1",
        campaign_id=None,
        manifest_id="m",
        keyword="vector store for LangChain memory",
        locale="en",
        kind=Kind.ARTICLE,
        priority=3,
        state=State.PARKED,
        stage=Stage.REWRITE,
        round=0,
        channel="qwen",
        writer="qwen",
        attempts=1,
        faults=0,
        reason=reason,
        hold=None,
        urls=(("blog", page, PublicationState.PUBLISHED),) if page else (),
        measurement=None,
        cost=Money(),
        run_id=None,
        submitted_at=NOW,
        started_at=NOW,
        updated_at=NOW,
        ended_at=None,
        done=(Stage.GENERATE,),
    )


def _shown(table: Table, width: int = 150) -> list[str]:
    console = Console(width=width, file=io.StringIO())
    console.print(table)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().rstrip().splitlines()


def test_a_long_reason_takes_no_room_from_the_stages_and_stays_on_one_line() -> None:
    header, row = _shown(stage_table([_parked("[400] the content was refused, word for word: " + "no " * 100)]))
    assert header.split() == ["article", *Stage, "state", "channel", "reason"]
    assert row.split()[5:13] == ["✓", "!", "·", "·", "·", "·", "parked", "qwen"]
    assert "[400] the content" in row
    assert row.rstrip().endswith("…")


def test_a_long_address_takes_no_room_from_the_figures() -> None:
    header, row = _shown(article_table([_parked("", page="https://blog.example/" + "long-" * 60)], terminal=True))
    assert header.split() == [
        "article",
        "state",
        "channel",
        "attempts",
        "page",
        "before",
        "after",
        "cited",
        "cost",
        "seconds",
    ]
    assert row.split()[-6:] == ["–", "–", "–", "0.00", "CNY", "0"]
    assert "https://blog.example/long-" in row


def test_ids_are_shown_as_far_as_tells_them_apart_with_room_for_the_reason_at_80_columns() -> None:
    rows = [_parked("no money").model_copy(update={"id": f"7AZ58F6RR{n}89EWKP50CE9K8K0"}) for n in (3, 4)]
    header, first, second = _shown(id_table(rows), width=80)
    assert header.split() == ["id", "article", "stage", "state", "channel", "reason"]
    assert [line.split()[0] for line in (first, second)] == ["7AZ58F6RR3", "7AZ58F6RR4"]
    _, alone = _shown(id_table(rows[:1]), width=80)
    assert alone.split()[0] == "7AZ58F6R"
    assert alone.endswith("no money")


def test_a_paused_channel_is_told_once_in_full() -> None:
    said = "qwen is paused: KEY is not set; export it"
    running = _parked(said).model_copy(update={"state": State.RUNNING})
    assert pauses([running, running, _parked("no money")]) == [said]
