"""Who is let in: keys by their hash, roles, tenants."""

import logging
from pathlib import Path

import httpx
import pytest

from citeloop.store.repositories import api_keys
from citeloop.store.statements import text
from starter import endpoints, keys
from starter.embedded.postgres import EmbeddedPostgres
from starter.errors import CommandError
from starter.stack import Stack
from tests.starter.api.conftest import Door
from tests.starter.cli import citeloop

LAST_USED = text("SELECT last_used_at FROM api_keys WHERE tenant_id = :tenant")


@pytest.mark.parametrize(
    "sent",
    [None, "", "Bearer", "Bearer ck_guess", "Basic dXNlcjpwYXNz", "Bearer ck_" + "A" * 43, "Bearer ck_" + "é" * 43],
)
async def test_nothing_is_answered_without_a_key_of_ours(door: Door, sent: str | None) -> None:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(door.app), base_url="http://api") as http:
        headers = {} if sent is None else {b"authorization": sent.encode()}
        for path in ("/v1/articles", "/v1/no-such-thing"):
            answer = await http.get(path, headers=headers)
            assert (answer.status_code, answer.json()["type"]) == (401, "/docs#no-key")
            assert answer.headers["www-authenticate"].startswith("Bearer")


async def test_a_viewer_may_look_and_change_nothing(door: Door, viewer: Door) -> None:
    article_id = await door.article()
    assert (await viewer.get(f"/v1/articles/{article_id}"))["keyword"] == "vector database"
    for method, path in (
        ("POST", "/v1/articles"),
        ("POST", f"/v1/articles/{article_id}/cancel"),
        ("PUT", "/v1/brands/mine"),
        ("PUT", "/v1/channels/deepseek/rate"),
    ):
        answer = await viewer.http.request(method, path, json={})
        assert (answer.status_code, answer.json()["type"]) == (403, "/docs#viewer")
    assert (await door.get(f"/v1/articles/{article_id}"))["hold"] is None


async def test_a_revoked_key_opens_nothing_from_the_next_request_on(door: Door) -> None:
    (known,) = await keys.listed(door.database, door.tenant)
    await door.get("/v1/articles")
    await keys.revoke(door.database, door.tenant, known.prefix)
    assert (await door.http.get("/v1/articles")).status_code == 401


async def test_only_the_hash_and_the_beginning_are_kept(door: Door, postgres: EmbeddedPostgres) -> None:
    key = door.http.headers["authorization"].split()[1]
    async with door.database.tenant(door.tenant.id) as scope:
        row = (await scope.sql.execute(text("SELECT * FROM api_keys"))).one()
    assert key not in str(row)
    assert key.startswith(row.prefix)
    assert len(row.prefix) == 11


async def test_using_a_key_is_noted_at_most_once_a_minute(door: Door) -> None:
    seen = set()
    for _ in range(3):
        await door.get("/v1/articles")
        async with door.database.tenant(door.tenant.id) as scope:
            seen.add((await scope.sql.execute(LAST_USED, {"tenant": door.tenant.id})).scalar_one())
    assert len(seen) == 1
    assert None not in seen


async def test_no_key_stands_in_a_log_or_an_answer(door: Door, caplog: pytest.LogCaptureFixture) -> None:
    key = door.http.headers["authorization"].split()[1]
    with caplog.at_level(logging.DEBUG):
        answers = [await door.http.get("/v1/articles"), await door.http.put("/v1/brands/x", content=b"{}")]
        answers.append(await door.http.get("/v1/articles", headers={"Authorization": f"Bearer {key}x"}))
    assert [answer.status_code for answer in answers] == [200, 422, 401]
    told = caplog.text + "".join(answer.text + str(answer.headers) for answer in answers)
    assert key not in told


async def test_the_tenant_of_a_key_is_told_by_one_function_and_no_table(door: Door) -> None:
    key = door.http.headers["authorization"].split()[1]
    holder = await keys.holder(door.database, key)
    assert holder is not None
    assert (holder.tenant, holder.name, holder.role) == (door.tenant, "editor", api_keys.KeyRole.OPERATOR)
    async with door.database.operator() as operator:
        assert (await operator.sql.execute(text("SELECT count(*) FROM api_keys"))).scalar_one() == 0


async def test_a_beginning_that_fits_several_keys_revokes_none(door: Door) -> None:
    await keys.create(door.database, door.tenant, "second", api_keys.KeyRole.VIEWER)
    for ref in ("ck_", "", "ck_nothing"):
        with pytest.raises(CommandError):
            await keys.revoke(door.database, door.tenant, ref)
    assert [key.revoked_at for key in await keys.listed(door.database, door.tenant)] == [None, None]


async def test_keys_are_made_listed_and_revoked_by_the_command_line(stack: Stack) -> None:
    home: Path = stack.home
    made = await citeloop("key", "create", "--role", "operator", "--name", "ci", home=home)
    key = made.out.strip()
    assert (made.code, len(key)) == (0, 46)
    known = endpoints.read(home)
    assert known is not None
    async with httpx.AsyncClient(base_url=known.api or "", trust_env=False) as http:
        headers = {"Authorization": f"Bearer {key}"}
        assert (await http.get("/v1/articles", headers=headers)).status_code == 200
        listed = await citeloop("key", "list", "--json", home=home)
        assert [row["prefix"] for row in listed.json if row["name"] == "ci"] == [key[:11]]
        assert key not in listed.out
        assert (await citeloop("key", "revoke", key[:11], home=home)).code == 0
        assert (await http.get("/v1/articles", headers=headers)).status_code == 401


async def test_a_strange_name_for_a_key_is_refused_in_a_line(stack: Stack) -> None:
    refused = await citeloop("key", "create", "--role", "viewer", "--name", "a\nb", home=stack.home)
    assert (refused.code, refused.err.startswith("error: name: ")) == (2, True)
