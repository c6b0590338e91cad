import base64
import stat
from pathlib import Path

import pytest

from citeloop import sealing
from citeloop.models.channel import Catalog, SiteKind, SiteSpec
from citeloop.settings import Settings
from citeloop.store.database import Database
from citeloop.store.repositories.sites import Put
from citeloop.store.repositories.tenants import TenantRow
from starter import endpoints
from starter.errors import CommandError
from starter.simulated import ROOT
from starter.site_commands import SiteCommands
from starter.site_files import BadFile, import_sites

HEAD = "name,kind,base_url,user,secret,rate,concurrency,labels,tags\n"
GOOD = "blog,wordpress,https://blog.example.com,ann,pass word,12/min,2,tea|own,Tea|Guides\n"
NEWS = "news,ghost,https://news.example.com,,id:5ec7e7,,,tea,\n"


@pytest.fixture
def commands(database: Database, tenant: TenantRow) -> SiteCommands:
    taken = SiteSpec(name="taken", kind=SiteKind.HALO, base_url="https://op.example.com")
    return SiteCommands(database, Catalog(sites=(taken,)), tenant, sealing.new_key())


def written(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "sites.csv"
    file.write_bytes(text.encode())
    return file


async def imported(commands: SiteCommands, file: Path, *, dry_run: bool = False, **environ: str) -> Put | int:
    return await import_sites(commands, file, environ, lambda _: None, dry_run=dry_run)


async def faults(commands: SiteCommands, file: Path, *, dry_run: bool) -> list[tuple[int, str, str, str]]:
    """(line, site, field, problem) of each."""
    with pytest.raises(BadFile) as bad:
        await imported(commands, file, dry_run=dry_run)
    return [(fault.line, fault.site, fault.field, fault.problem) for fault in bad.value.faults]


async def test_a_file_is_imported_and_importing_it_again_changes_nothing(
    commands: SiteCommands, tmp_path: Path
) -> None:
    file = written(tmp_path, HEAD + GOOD + NEWS)
    assert await imported(commands, file) == Put(new=2, changed=0, same=0)
    assert await imported(commands, file) == Put(new=0, changed=0, same=2)
    slower = written(tmp_path, HEAD + GOOD.replace("12/min", "6/min") + NEWS)
    assert await imported(commands, slower) == Put(new=0, changed=1, same=1)
    blog = await commands.show("blog")
    assert (blog.rate, blog.concurrency, blog.labels) == ("6/min", 2, ("tea", "own"))
    assert blog.settings == {"tags": ["Tea", "Guides"]}
    assert (await commands.show("news")).concurrency == 4


async def test_a_line_without_a_secret_keeps_the_one_that_is_there(commands: SiteCommands, tmp_path: Path) -> None:
    await imported(commands, written(tmp_path, HEAD + GOOD))
    bare = GOOD.replace("pass word", "").replace("12/min", "1/h")
    assert await imported(commands, written(tmp_path, HEAD + bare)) == Put(new=0, changed=1, same=0)
    moved = bare.replace("blog.example.com", "other.example.com")
    with pytest.raises(CommandError, match=r"blog\.secret: is missing; its address or kind changes"):
        await imported(commands, written(tmp_path, HEAD + moved))


async def test_every_mistake_is_told_with_its_line_and_nothing_is_kept(commands: SiteCommands, tmp_path: Path) -> None:
    lines = (
        GOOD,
        "x,wordpress,ftp://a.example.com,ann,s,,,,\n",
        "Big Name,ghost,https://a.example.com,,id:aa,,,,\n",
        "y,drupal,https://a.example.com,,s,,,,\n",
        "blog,ghost,https://b.example.com,,id:aa,,,,\n",
        "z,ghost,https://z.example.com,,id:aa,often,,,\n",
        "w,ghost,https://w.example.com,,id:aa,,lots,,\n",
        "v,ghost,https://v.example.com,,id:aa,,,UPPER,\n",
        "taken,ghost,https://t.example.com,,id:aa,,,,\n",
        "p,ghost,http://192.168.0.1,,id:aa,,,,\n",
    )
    with pytest.raises(BadFile) as bad:
        await imported(commands, written(tmp_path, HEAD + "".join(lines)))
    told = [(fault.line, fault.field) for fault in bad.value.faults]
    assert told == [
        (3, "base_url"), (4, ""), (5, "kind"), (6, "name"), (7, "rate"), (8, "concurrency"), (9, "labels"),
        (10, "name"), (11, "base_url"),
    ]  # fmt: skip
    assert all(fault.problem for fault in bad.value.faults)
    assert "repeats line 2" in bad.value.faults[3].problem
    assert await commands.page(limit=10) == []


async def test_a_dry_run_finds_what_the_import_refuses_all_at_once_and_by_line(
    commands: SiteCommands, tmp_path: Path
) -> None:
    await imported(commands, written(tmp_path, HEAD + GOOD + NEWS))
    lines = (
        GOOD.replace("blog,", "fresh,").replace("pass word", ""),
        NEWS.replace("id:5ec7e7", "").replace("news.example.com", "moved.example.com"),
        "x,wordpress,ftp://a.example.com,ann,s,,,,\n",
        GOOD.replace("pass word", ""),
        NEWS.replace("news,", "bare,").replace("id:5ec7e7", ""),
    )
    file = written(tmp_path, HEAD + "".join(lines))
    dry = await faults(commands, file, dry_run=True)
    assert [(line, site, field) for line, site, field, _ in dry] == [
        (2, "fresh", "secret"), (3, "news", "secret"), (4, "x", "base_url"), (6, "bare", "secret"),
    ]  # fmt: skip
    assert {problem for _, _, field, problem in dry if field == "secret"} == {"is missing"}
    assert await faults(commands, file, dry_run=False) == dry
    assert await imported(commands, written(tmp_path, HEAD + lines[3] + NEWS), dry_run=True) == 2


async def test_a_dry_run_without_a_key_says_so_once_where_it_is_first_needed(
    database: Database, tenant: TenantRow, tmp_path: Path
) -> None:
    bare = NEWS.replace("news,", "bare,").replace("id:5ec7e7", "")
    file = written(tmp_path, HEAD + bare + GOOD + NEWS)
    for key, problem in ((None, "CITELOOP_SECRET_KEY is not set"), ("no key", "CITELOOP_SECRET_KEY holds no Fernet")):
        commands = SiteCommands(database, Catalog(), tenant, key)
        missing, keyless = await faults(commands, file, dry_run=True)
        assert missing == (2, "bare", "secret", "is missing")
        assert (keyless[:3], keyless[3].startswith(problem)) == ((3, "blog", "secret"), True)


async def test_credentials_may_come_from_variables(commands: SiteCommands, tmp_path: Path) -> None:
    head = "name,kind,base_url,user_env,secret_env\n"
    file = written(tmp_path, head + "blog,wordpress,https://blog.example.com,BLOG_USER,BLOG_PW\n")
    with pytest.raises(BadFile, match="BLOG_PW is not set"):
        await imported(commands, file, BLOG_USER="ann")
    assert await imported(commands, file, BLOG_USER="ann", BLOG_PW="s") == Put(new=1, changed=0, same=0)
    assert (await commands.show("blog")).user == "ann"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "no column name, kind, base_url"),
        ("name,kind,base_url,passwort\n", "unknown column 'passwort'"),
        (HEAD, "holds no sites"),
        (HEAD + "a,b,c,d,e,f,g,h,i,j\n", "line 2 has 10 cells"),
        (HEAD + GOOD + GOOD.replace("pass word", "p" * 200_000), "line 3: field larger than"),
        (HEAD + GOOD + GOOD.replace("https", '"https'), "line 3: unexpected end"),
        (HEAD + GOOD + NEWS.replace("tea", "t\0ea"), r"line 3: news\.labels: holds a NUL"),
        ("name;kind;base_url\n", "unknown column"),
    ],
)
async def test_a_file_that_is_no_list_of_sites_says_so(
    commands: SiteCommands, tmp_path: Path, text: str, told: str
) -> None:
    with pytest.raises(CommandError, match=told):
        await imported(commands, written(tmp_path, text))


async def test_a_spreadsheets_file_is_read(commands: SiteCommands, tmp_path: Path) -> None:
    file = written(tmp_path, "\ufeff" + (HEAD + GOOD).replace("\n", "\r\n") + ",,,,,,,,\r\n")
    assert await imported(commands, file) == Put(new=1, changed=0, same=0)


async def test_the_example_is_good(commands: SiteCommands) -> None:
    signing = "whsec_" + base64.b64encode(b"k" * 32).decode()
    came = await imported(
        commands,
        ROOT / "examples" / "sites.csv",
        TEA_BLOG_PASSWORD="abcd efgh ijkl",
        TEA_NEWS_KEY="5f0c:aabbcc",
        PARTNER_SIGNING_SECRET=signing,
    )
    assert came == Put(new=3, changed=0, same=0)


async def test_without_a_key_nothing_secret_is_kept(database: Database, tenant: TenantRow, tmp_path: Path) -> None:
    for key in (None, "", "no key"):
        commands = SiteCommands(database, Catalog(), tenant, key)
        with pytest.raises(CommandError, match="CITELOOP_SECRET_KEY"):
            await imported(commands, written(tmp_path, HEAD + GOOD))
    assert await commands.page(limit=10) == []


def test_the_stacks_key_is_made_once_and_only_its_owner_may_read_it(tmp_path: Path) -> None:
    key = endpoints.kept_secret_key(tmp_path)
    assert endpoints.kept_secret_key(tmp_path) == key
    assert endpoints.secret_key(Settings(home=tmp_path)) == key
    assert stat.S_IMODE(endpoints.secret_key_file(tmp_path).stat().st_mode) == 0o600
