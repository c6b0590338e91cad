"""Folders that Hugo, Jekyll and Astro build: what the files say, whose they are, and how git keeps them."""

import asyncio
import json
import re
import shutil
from pathlib import Path

import pytest

from citeloop.channels.errors import ChannelError, Fault
from citeloop.channels.ports import Post
from citeloop.models.channel import Generator
from citeloop.rules import rendering
from tests.channels.publishers.conformance import MARKER, PICTURE, POST
from tests.channels.publishers.projects import BASE, NOW, Project
from tests.channels.settings import call

URL = f"{BASE}/posts/{POST.slug}/"
NASTY = "# T\n\nUse {{ site.url }}, {% include x %} and {{< ref >}}.\n\n```\na = {{ y }}\n\n\nb = {{% z %}}\n```\n"
PAGES = {
    Generator.HUGO: f"content/posts/{POST.slug}/index.html",
    Generator.JEKYLL: f"_posts/2026-11-29-{POST.slug}.html",
    Generator.ASTRO: f"src/content/posts/{POST.slug}.md",
}


def numbered(number: int) -> Post:
    return POST.model_copy(
        update={"marker": f"citeloop-{number:024}", "slug": f"tea-{number}", "title": f"Tea {number}"}
    )


def front_matter(text: str) -> dict[str, str]:
    _, matter, _ = text.split("---\n", 2)
    return dict(line.split(": ", 1) for line in matter.splitlines())


@pytest.fixture(params=list(Generator))
def project(request: pytest.FixtureRequest, tmp_path: Path) -> Project:
    return Project(tmp_path, request.param, git=True)


@pytest.fixture
def hugo(tmp_path: Path) -> Project:
    return Project(tmp_path, Generator.HUGO, git=True)


async def test_the_page_stands_where_its_generator_looks_with_all_that_themes_read(project: Project) -> None:
    post = POST.model_copy(
        update={
            "title": 'Tea: "cold"\n \\ #1',
            "tags": ("Tea", "R&D"),
            "categories": ("Guides",),
            "author": "A. Writer",
            "canonical_url": "https://original.example/tea",
        }
    )
    placed = await project.publisher().publish(post, call())
    assert (placed.remote_id, placed.url) == (PAGES[project.generator], URL)
    fields = front_matter((project.root / placed.remote_id).read_text())
    assert json.loads(fields["title"]) == 'Tea: "cold" \\ #1'
    assert json.loads(fields["tags"]) == ["Tea", "R&D"]
    assert fields["date"] == "2026-11-29T12:00:00Z"
    assert json.loads(fields["citeloop"]) == MARKER
    canonical = fields.get("canonicalURL") or fields["canonical_url"]
    assert json.loads(canonical) == "https://original.example/tea"
    assert (
        json.loads(fields.get("url") or fields.get("permalink") or '"/posts/green-tea-1a2b3c4d/"') == URL[len(BASE) :]
    )


async def test_template_marks_and_blank_lines_of_the_text_reach_no_template_engine(project: Project) -> None:
    json_ld = rendering.json_ld(NASTY, locale="en", brand="{{ x }}", homepage="https://a.example")
    post = POST.model_copy(update={"html": rendering.to_html(NASTY), "json_ld": json_ld})
    placed = await project.publisher().publish(post, call())
    body = (project.root / placed.remote_id).read_text().split("---\n", 2)[2]
    assert not re.search(r"\{[{%#]", body)
    assert "\n\n" not in body
    assert body.startswith("<div ")
    script = re.search(r'<script type="application/ld\+json">(.*)</script>', body)
    assert script is not None
    article = json.loads(script[1])["@graph"][0]
    assert article["author"]["name"] == "{{ x }}"
    assert article["mainEntityOfPage"]["@id"] == URL


async def test_the_picture_stands_beside_the_page_and_an_old_one_goes(project: Project) -> None:
    publisher = project.publisher()
    placed = await publisher.publish(POST, call())
    (picture,) = list(project.root.rglob("citeloop-*.png"))
    assert picture.read_bytes() == PICTURE.data
    assert f"{URL}{picture.name}" in (project.root / placed.remote_id).read_text()
    other = PICTURE.model_copy(update={"data": PICTURE.data + b"\0"})
    await publisher.update(POST.model_copy(update={"picture": other}), placed.remote_id, call())
    assert [path.name for path in project.root.rglob("citeloop-*.png")] != [picture.name]
    assert len(list(project.root.rglob("citeloop-*.png"))) == 1
    await publisher.withdraw(POST, placed.remote_id, call())
    assert not list(project.root.rglob("citeloop-*.png"))
    assert project.git("status", "--porcelain") == ""


async def test_a_page_of_somebody_else_is_never_touched(project: Project) -> None:
    page = project.root / PAGES[project.generator]
    page.parent.mkdir(parents=True)
    page.write_text("---\ntitle: by hand\n---\nBy hand.\n")
    publisher = project.publisher()
    assert await publisher.look_up(POST, call()) is None
    for attempt in (
        publisher.publish(POST, call()),
        publisher.update(POST, PAGES[project.generator], call()),
        publisher.withdraw(POST, PAGES[project.generator], call()),
    ):
        with pytest.raises(ChannelError, match="does not bear our marker") as raised:
            await attempt
        assert raised.value.fault is Fault.INVALID
    assert page.read_text().endswith("By hand.\n")


async def test_a_page_that_was_moved_by_hand_is_found_by_its_marker_and_corrected_there(hugo: Project) -> None:
    publisher = hugo.publisher()
    placed = await publisher.publish(POST, call())
    hugo.git("mv", f"content/posts/{POST.slug}", "content/posts/moved")
    hugo.git("commit", "--quiet", "-m", "Move")
    found = await publisher.look_up(POST, call())
    assert found is not None
    assert found.remote_id == "content/posts/moved/index.html"
    changed = await publisher.update(POST.model_copy(update={"title": "New"}), placed.remote_id, call())
    assert changed.remote_id == "content/posts/moved/index.html"


@pytest.mark.parametrize("remote_id", ["../outside.html", "/etc/hostname", "content/../../x"])
async def test_a_path_out_of_the_folder_leads_nowhere(hugo: Project, remote_id: str) -> None:
    with pytest.raises(ChannelError, match="not there any more"):
        await hugo.publisher().update(POST, remote_id, call())


@pytest.mark.parametrize("slug", ["../up", "Up", "a--b", "", "a/b"])
async def test_a_slug_that_no_path_may_hold_is_refused(hugo: Project, slug: str) -> None:
    with pytest.raises(ChannelError):
        await hugo.publisher().publish(POST.model_copy(update={"slug": slug}), call())


async def test_each_change_is_a_commit_of_its_own_files_only(hugo: Project) -> None:
    (hugo.root / "draft.txt").write_text("somebody's work")
    hugo.git("add", "draft.txt")
    publisher = hugo.publisher()
    placed = await publisher.publish(POST, call())
    await publisher.publish(POST, call())
    await publisher.withdraw(POST, placed.remote_id, call())
    assert hugo.log() == [f"Withdraw {POST.slug}", f"Publish {POST.slug}", "The site"]
    assert hugo.git("status", "--porcelain") == "A  draft.txt\n"
    assert "An Editor" in hugo.git("log", "-1", "--format=%an")


async def test_a_checkout_without_a_user_is_committed_to_by_us(hugo: Project) -> None:
    hugo.git("config", "--unset", "user.email")
    hugo.git("config", "--unset", "user.name")
    await hugo.publisher().publish(POST, call())
    assert hugo.git("log", "-1", "--format=%an").strip() == "CiteLoop"


async def test_a_page_that_was_written_but_not_committed_does_not_count(hugo: Project) -> None:
    publisher = hugo.publisher()
    await publisher.publish(POST, call())
    hugo.git("reset", "--soft", "HEAD~1")
    assert await publisher.look_up(POST, call()) is None
    await publisher.publish(POST, call())
    assert await publisher.look_up(POST, call()) is not None
    assert len(await hugo.shown()) == 1


async def test_many_at_once_are_as_many_commits_and_every_one_is_listed(hugo: Project) -> None:
    publishers = [hugo.publisher() for _ in range(3)]
    await asyncio.gather(*(publishers[n % 3].publish(numbered(n), call()) for n in range(9)))
    assert len(await hugo.shown()) == 9
    assert len(hugo.log()) == 10
    assert (hugo.root / "static/llms.txt").read_text().count("](https://docs.example/posts/tea-") == 9
    assert hugo.git("status", "--porcelain") == ""
    assert not list(hugo.root.rglob("*.tmp"))


async def test_git_gets_none_of_our_keys(hugo: Project) -> None:
    hook = hugo.root / ".git/hooks/post-commit"
    hook.write_text("#!/bin/sh\nenv > environment.txt\n")
    hook.chmod(0o755)
    await hugo.publisher().publish(POST, call())
    told = (hugo.root / "environment.txt").read_text()
    assert "GIT_TERMINAL_PROMPT=0" in told
    assert "KEY=" not in told


async def test_a_remote_that_moved_on_is_told_in_words_and_nothing_is_lost(tmp_path: Path) -> None:
    project = Project(tmp_path, Generator.HUGO, git=True, push=True)
    other = tmp_path / "other"
    project.git("clone", "--quiet", str(project.upstream), str(other))
    project.git("config", "user.email", "e@example.org", cwd=other)
    project.git("config", "user.name", "E", cwd=other)
    project.git("commit", "--quiet", "--allow-empty", "-m", "Theirs", cwd=other)
    project.git("push", "--quiet", cwd=other)
    publisher = project.publisher()
    await publisher.publish(POST, call())
    assert project.log() == [f"Publish {POST.slug}", "Theirs", "The site"]
    project.git("commit", "--quiet", "--allow-empty", "-m", "Ours alone")
    project.git("commit", "--quiet", "--allow-empty", "-m", "Theirs again", cwd=other)
    project.git("push", "--quiet", "--force", cwd=other)
    with pytest.raises(ChannelError, match="merge them in the checkout") as raised:
        await publisher.publish(numbered(1), call())
    assert raised.value.fault is Fault.UNAVAILABLE


async def test_an_upstream_that_cannot_be_reached_is_a_fault_that_passes(tmp_path: Path) -> None:
    project = Project(tmp_path, Generator.HUGO, git=True, push=True)
    project.git("remote", "set-url", "origin", str(tmp_path / "gone.git"))
    with pytest.raises(ChannelError, match="git pull") as raised:
        await project.publisher().publish(POST, call())
    assert raised.value.fault is Fault.UNAVAILABLE
    report = await project.publisher().check(call())
    assert not report.ok


async def test_a_machine_without_git_says_so(hugo: Project) -> None:
    hugo.environ["PATH"] = "/nonexistent"
    with pytest.raises(ChannelError, match="git is not installed"):
        await hugo.publisher().publish(POST, call())


async def test_llms_txt_keeps_what_others_wrote_and_has_each_article_once(hugo: Project) -> None:
    file = hugo.root / "static/llms.txt"
    file.parent.mkdir()
    file.write_text("# Acme\n\n> What we do.\n\n## Docs\n\n- [API](https://docs.example/api): all calls\n")
    publisher = hugo.publisher()
    placed = await publisher.publish(POST.model_copy(update={"title": "A [nice] tea"}), call())
    await publisher.update(POST.model_copy(update={"title": "A [fine] tea"}), placed.remote_id, call())
    told = file.read_text()
    assert told.startswith("# Acme\n\n> What we do.\n\n## Docs\n\n- [API](https://docs.example/api): all calls\n")
    assert told.endswith(f"## Articles\n\n- [A (fine) tea]({URL}): {POST.excerpt}\n")
    await publisher.withdraw(POST, placed.remote_id, call())
    assert URL not in file.read_text()
    assert "[API]" in file.read_text()


SITEMAP = """\
<?xml version="1.0" encoding="UTF-8"?>
<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">
  <url><loc>https://docs.example/</loc></url>
</urlset>
"""


async def test_a_sitemap_gets_each_article_once_with_its_last_change(tmp_path: Path) -> None:
    project = Project(tmp_path, Generator.ASTRO, git=False)
    file = project.root / "public/sitemap.xml"
    file.parent.mkdir()
    file.write_text(SITEMAP)
    publisher = project.publisher()
    placed = await publisher.publish(POST, call())
    await publisher.update(POST, placed.remote_id, call())
    entry = f"  <url><loc>{URL}</loc><lastmod>{NOW:%Y-%m-%dT%H:%M:%SZ}</lastmod></url>\n"
    assert file.read_text() == SITEMAP.replace("</urlset>", f"{entry}</urlset>")
    await publisher.withdraw(POST, placed.remote_id, call())
    assert file.read_text() == SITEMAP


@pytest.mark.parametrize(
    ("generator", "file", "text", "written"),
    [
        (Generator.HUGO, "hugo.toml", "title = 'x'", False),
        (Generator.JEKYLL, "_config.yml", "title: x", True),
        (Generator.JEKYLL, "_config.yml", "plugins: [jekyll-sitemap]", False),
        (Generator.ASTRO, "package.json", "{}", True),
        (Generator.ASTRO, "package.json", '{"dependencies": {"@astrojs/sitemap": "3"}}', False),
    ],
)
async def test_a_sitemap_that_the_generator_makes_is_left_to_it(
    tmp_path: Path, generator: Generator, file: str, text: str, written: bool
) -> None:
    project = Project(tmp_path, generator, git=False)
    (project.root / file).write_text(text)
    await project.publisher().publish(POST, call())
    assert bool(list(project.root.rglob("sitemap.xml"))) is written


async def test_a_sitemap_of_another_form_is_left_alone(tmp_path: Path) -> None:
    project = Project(tmp_path, Generator.JEKYLL, git=False)
    (project.root / "sitemap.xml").write_text("<sitemapindex></sitemapindex>")
    await project.publisher().publish(POST, call())
    assert (project.root / "sitemap.xml").read_text() == "<sitemapindex></sitemapindex>"


async def test_a_check_says_what_is_missing_and_what_is_worth_knowing(tmp_path: Path, hugo: Project) -> None:
    assert any("not pushed" in note for note in (await hugo.publisher().check(call())).notes)
    hugo.git("checkout", "--quiet", "--detach")
    assert any("no branch" in problem for problem in (await hugo.publisher().check(call())).problems)
    hugo.git("checkout", "--quiet", "main")
    assert any("no upstream" in problem for problem in (await hugo.publisher(push=True).check(call())).problems)
    (tmp_path / "empty").mkdir()
    report = await hugo.publisher(folder=str(tmp_path / "empty")).check(call())
    assert any("no configuration of hugo" in note for note in report.notes)


@pytest.mark.skipif(shutil.which("hugo") is None, reason="hugo is not installed")
async def test_the_real_hugo_builds_it_and_runs_nothing_of_the_text(hugo: Project) -> None:
    layouts = hugo.root / "layouts/_default"
    layouts.mkdir(parents=True)
    (layouts / "single.html").write_text("<h1>{{ .Title }}</h1>{{ .Content }}")
    (hugo.root / "hugo.toml").write_text(f'baseURL = "{BASE}/"\n')
    (hugo.root / "config.toml").write_text(f'baseURL = "{BASE}/"\n')
    await hugo.publisher().publish(POST.model_copy(update={"html": rendering.to_html(NASTY)}), call())
    hugo.build("hugo", "--quiet")
    page = (hugo.root / f"public/posts/{POST.slug}/index.html").read_text()
    assert "a = &#123;{ y }}" in page
    assert (hugo.root / "public/llms.txt").exists()


@pytest.mark.skipif(shutil.which("jekyll") is None, reason="jekyll is not installed")
async def test_the_real_jekyll_builds_it_and_runs_nothing_of_the_text(tmp_path: Path) -> None:
    project = Project(tmp_path, Generator.JEKYLL, git=False)
    (project.root / "_layouts").mkdir()
    (project.root / "_layouts/post.html").write_text("<h1>{{ page.title }}</h1>{{ content }}")
    await project.publisher().publish(POST.model_copy(update={"html": rendering.to_html(NASTY)}), call())
    project.build("jekyll", "build", "--quiet")
    page = (project.root / f"_site/posts/{POST.slug}/index.html").read_text()
    assert "a = &#123;{ y }}" in page
    assert list((project.root / f"_site/posts/{POST.slug}").glob("citeloop-*.png"))
