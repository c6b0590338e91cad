"""Corrections over HTTP: recorded although Temporal is away, listed, refused, and closed to strangers."""

from typing import Any

import pytest

from citeloop.models.work import PublicationState
from citeloop.store.repositories import publications
from tests.starter.api.conftest import Door


async def standing(door: Door, keyword: str, state: PublicationState = PublicationState.PUBLISHED) -> str:
    """An article with a page on `blog`, as its workflow would have left it."""
    article_id = await door.article(keyword)
    async with door.database.tenant(door.tenant.id) as scope:
        row = await publications.reserve(
            scope, article_id=article_id, site="blog", kind="wordpress", marker="m", digest="d"
        )
        await publications.advance(
            scope, row.id, expected={PublicationState.RESERVED}, to=state, remote_id="7", url="https://blog.example/7"
        )
    return article_id


async def test_a_withdrawal_is_recorded_while_temporal_is_away(door: Door) -> None:
    article_id = await standing(door, "to be withdrawn")
    answers = [await door.http.post(f"/v1/articles/{article_id}/unpublish", json={"reason": "wrong"}) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [202, 202]
    (page,) = answers[0].json()["pages"]
    assert (page["site"], page["kind"], page["state"]) == ("blog", "withdraw", "asked")
    (kept,) = (await door.get(f"/v1/articles/{article_id}/corrections"))["items"]
    assert (kept["id"], kept["by"], kept["reason"]) == (page["correction_id"], "editor", "wrong")


async def test_a_page_that_is_on_its_way_is_a_conflict(door: Door) -> None:
    article_id = await standing(door, "on its way", PublicationState.UNKNOWN)
    answer = await door.http.post(f"/v1/articles/{article_id}/unpublish")
    assert answer.status_code == 409
    assert "is still on its way to blog" in answer.json()["detail"]


@pytest.mark.parametrize(
    "given", [{}, {"text": "# T\n\nb", "draft_id": "0" * 26}, {"text": "x" * 200_001}, {"text": "no title"}]
)
async def test_a_correction_needs_one_text_with_a_title(door: Door, given: dict[str, Any]) -> None:
    article_id = await standing(door, f"corrected {len(str(given))}")
    answer = await door.http.post(f"/v1/articles/{article_id}/correct", json=given)
    assert answer.status_code == 422, answer.text
    assert (await door.get(f"/v1/articles/{article_id}/corrections"))["items"] == []


async def test_another_tenants_page_is_not_there(door: Door, stranger: Door) -> None:
    article_id = await standing(door, "ours")
    for path, given in (("unpublish", {}), ("correct", {"text": "# T\n\nb"})):
        assert (await stranger.http.post(f"/v1/articles/{article_id}/{path}", json=given)).status_code == 404
    assert (await stranger.http.get(f"/v1/articles/{article_id}/corrections")).status_code == 404


async def test_a_viewer_may_look_and_not_touch(door: Door, viewer: Door) -> None:
    article_id = await standing(door, "only looked at")
    assert (await viewer.http.post(f"/v1/articles/{article_id}/unpublish")).status_code == 403
    assert (await viewer.get(f"/v1/articles/{article_id}/corrections"))["items"] == []
