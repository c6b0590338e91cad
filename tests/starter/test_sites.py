"""`citeloop sites` as a process, and an article by a worker process to a site that only the registry knows."""

from pathlib import Path

import pytest

from citeloop.models.plan import ReviewMode, Stage, State
from starter import endpoints, simulated
from tests.installation import Installation
from tests.payloads import history_text
from tests.starter.cli import ROOT, Ran, citeloop

USER, PASSWORD = (simulated.ENVIRONMENT[f"SANDBOX_BLOG_{part}"] for part in ("USER", "PASSWORD"))
STAGES = (Stage.GENERATE, Stage.REVIEW, Stage.PUBLISH)


async def added(installation: Installation, name: str, password: str = PASSWORD) -> Ran:
    url = f"{installation.sandbox.url}/blog"
    return await citeloop(
        "sites", "add", name, "--kind", "wordpress", "--url", url, "--user", USER, "--secret-env", "PW",
        "--label", "own", "--rate", "20/s", "--set", "timeouts.total=20s", "--json",
        home=installation.home, environ={"PW": password},
    )  # fmt: skip


async def test_a_site_is_added_listed_changed_checked_and_removed(installation: Installation) -> None:
    home = installation.home
    made = await added(installation, "cli-blog")
    assert made.code == 0, made.err
    assert (made.json["labels"], made.json["settings"]) == (["own"], {"timeouts": {"total": "20s"}})
    wrong = await added(installation, "cli-wrong", "no such password")
    assert wrong.code == 0, wrong.err
    page = await citeloop("sites", "list", "--tag", "own", "--limit", "1", "--json", home=home)
    assert ([site["name"] for site in page.json["items"]], page.json["next"]) == (["cli-blog"], "cli-blog")
    every = await citeloop("sites", "list", "--json", home=home)
    sources = {site["name"]: site["source"] for site in every.json["items"]}
    assert {"cli-blog": "registry", "blog": "channels.toml", "hook": "channels.toml"}.items() <= sources.items()
    shown = await citeloop("sites", "list", "--kind", "webhook", home=home)
    assert [line.split()[0] for line in shown.out.splitlines()] == ["name", "hook"]
    good = await citeloop("sites", "check", "cli-blog", home=home)
    assert (good.code, good.out.splitlines()[0]) == (0, "ok  cli-blog")
    assert "may not" not in good.out
    both = await citeloop("sites", "check", "--label", "own", "--json", home=home)
    assert both.code == 1
    assert [(site["site"], site["ok"]) for site in both.json] == [("cli-blog", True), ("cli-wrong", False)]
    assert "password" in both.json[1]["problems"][0]
    slower = await citeloop("sites", "set", "cli-blog", "--rate", "6/min", "--json", home=home)
    assert (slower.json["rate"], slower.json["labels"], slower.json["revision"]) == ("6/min", ["own"], 2)
    for name in ("cli-blog", "cli-wrong"):
        assert (await citeloop("sites", "remove", name, home=home)).code == 0
    assert (await citeloop("sites", "show", "cli-blog", home=home)).code == 2
    for ran in (made, wrong, page, good, both, slower):
        assert PASSWORD not in ran.out + ran.err
        assert "no such password" not in ran.out + ran.err


async def test_the_operators_sites_are_checked_by_name_too(installation: Installation) -> None:
    ran = await citeloop("sites", "check", "blog", home=installation.home)
    assert (ran.code, ran.out.splitlines()[0]) == (0, "ok  blog")
    unknown = await citeloop("sites", "check", "nobody", home=installation.home)
    assert unknown.code == 2
    assert unknown.err == "error: site: 'nobody' is no site; `citeloop sites list` lists those that are registered\n"


async def test_a_file_with_mistakes_names_their_lines_and_exits_2(installation: Installation, tmp_path: Path) -> None:
    file = tmp_path / "sites.csv"
    file.write_text(
        "name,kind,base_url,user,secret,rate\n"
        "f1,wordpress,https://a.example.com,ann,pw,12/min\n"
        "f2,wordpress,https://b.example.com,ann,pw,often\n"
        "f3,drupal,https://c.example.com,ann,pw,\n"
    )
    told = await citeloop("sites", "import", str(file), home=installation.home)
    assert told.code == 2
    assert "line 3: f2.rate: 'often' is no rate" in told.err
    assert "line 4: f3.kind: 'drupal' is not known" in told.err
    machine = await citeloop("sites", "import", str(file), "--json", home=installation.home)
    assert [(fault["line"], fault["field"]) for fault in machine.json] == [(3, "rate"), (4, "kind")]
    assert (await citeloop("sites", "show", "f1", home=installation.home)).code == 2


async def test_a_dry_run_names_every_site_that_lacks_its_secret(installation: Installation, tmp_path: Path) -> None:
    file = tmp_path / "sites.csv"
    file.write_text(
        "name,kind,base_url,user,secret\n"
        "d1,wordpress,https://a.example.com,ann,\n"
        "d2,wordpress,https://b.example.com,ann,pw\n"
        "d3,ghost,https://c.example.com,,\n"
    )
    told = await citeloop("sites", "import", str(file), "--dry-run", home=installation.home)
    assert told.code == 2
    assert told.err.splitlines()[:2] == [
        "line 2: d1.secret: is missing; a wordpress site needs one",
        "line 4: d3.secret: is missing; a ghost site needs one",
    ]
    machine = await citeloop("sites", "import", str(file), "--dry-run", "--json", home=installation.home)
    assert (machine.code, [(fault["line"], fault["field"]) for fault in machine.json]) == (
        2,
        [(2, "secret"), (4, "secret")],
    )


async def test_the_example_file_is_judged_without_being_kept(installation: Installation) -> None:
    environ = {
        "TEA_BLOG_PASSWORD": "abcd efgh",
        "TEA_NEWS_KEY": "5f0c:aabb",
        "PARTNER_SIGNING_SECRET": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
    }
    file = str(ROOT / "examples" / "sites.csv")
    ran = await citeloop("sites", "import", file, "--dry-run", "--json", home=installation.home, environ=environ)
    assert ran.code == 0, ran.err
    assert (ran.json["lines"], ran.json["dry_run"]) == (3, True)
    assert (await citeloop("sites", "show", "tea-blog", home=installation.home)).code == 2


@pytest.mark.timeout(120)
async def test_an_article_reaches_a_registered_site_and_no_trace_of_the_secret_is_left(
    installation: Installation,
) -> None:
    assert (await added(installation, "journey-blog")).code == 0
    article_id = await installation.submit(
        "a site of our own", mode=ReviewMode.AUTO, stages=STAGES, sites=("journey-blog",)
    )
    article = await installation.until(article_id, State.DONE, State.PARKED, State.FAILED, within=60)
    assert article.state is State.DONE, article.reason
    history = await history_text(installation.workflow(article_id))
    assert "journey-blog" in history
    key = endpoints.secret_key_file(installation.home)
    known = {key, endpoints.file_of(installation.home)}  # the sandbox's own password is no secret, and stands there
    files = [path for path in installation.home.rglob("*") if path.suffix in {".log", ".jsonl", ".json"}]
    assert any(path.suffix == ".jsonl" for path in files), "traces are written"
    told = "\n".join([history, *(path.read_text(errors="replace") for path in files if path not in known)])
    assert "journey-blog" in told
    for hidden in (PASSWORD, PASSWORD.replace(" ", ""), key.read_text().strip()):
        assert hidden not in told
