"""Pictures made and found: Seedream, DashScope at once and by task, Unsplash and Pexels."""

import base64
import io
import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from PIL import Image

from citeloop.channels.errors import ChannelError, Fault, Remedy
from citeloop.channels.illustrators.ark_seedream import ArkSeedream
from citeloop.channels.illustrators.dashscope_images import DashScopeImages
from citeloop.channels.illustrators.pexels import Pexels
from citeloop.channels.illustrators.unsplash import Unsplash
from citeloop.channels.ports import Illustrator, PictureBrief, PictureFile
from citeloop.channels.wire import Wire
from citeloop.models.channel import ChannelSpec, Price, Role
from tests.channels.provider import Provider, stream
from tests.channels.settings import KEY, call, spec

BRIEF = PictureBrief(prompt="a cup of tea", title="The best green tea of the year", alt="tea")
STORE = "https://pictures.example/x.png"
Handler = Callable[[httpx.Request], httpx.Response]
Kind = Callable[[ChannelSpec, str, Wire, Wire], Illustrator]


def png(width: int = 640, height: int = 360) -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (width, height), "#3f9c7a").save(out, "PNG")
    return out.getvalue()


def channel(dialect: str, model: str = "m", **changes: object) -> ChannelSpec:
    price = Price(call=200_000, currency="CNY")
    fields = {"roles": frozenset({Role.ILLUSTRATE}), "dialect": dialect, "model": model, "price": price}
    return spec("https://api.example/v1", **{**fields, **changes})


async def draw(kind: Kind, using: ChannelSpec, *answers: httpx.Response | Handler) -> tuple[PictureFile, Provider]:
    async with Provider(*answers) as provider:
        wire = provider.wire(using)
        return await kind(using, KEY, wire, wire).illustrate(BRIEF, call(total=5)), provider


async def refused(kind: Kind, using: ChannelSpec, *answers: httpx.Response | Handler) -> ChannelError:
    with pytest.raises(ChannelError) as raised:
        await draw(kind, using, *answers)
    return raised.value


def encoded() -> dict[str, str]:
    return {"b64_json": base64.b64encode(png()).decode()}


def broken(code: str) -> dict[str, Any]:
    return {"error": {"code": code, "message": "x"}}


async def test_seedream_is_asked_for_one_picture_without_a_mark() -> None:
    picture, provider = await draw(
        ArkSeedream, channel("ark_seedream"), httpx.Response(200, json={"data": [encoded()]})
    )
    sent = provider.body()
    assert (sent["size"], sent["watermark"], sent["sequential_image_generation"]) == ("2K", False, "disabled")
    assert (picture.width, picture.height, picture.media_type) == (640, 360, "image/jpeg")
    assert picture.cost.micros == 200_000


async def test_seedreams_picture_may_come_in_a_stream() -> None:
    using = channel("ark_seedream", extra={"stream": True})
    events = stream(
        {"type": "image_generation.partial_succeeded", "image_index": 0, **encoded()},
        {"type": "image_generation.completed", "usage": {"generated_images": 1}},
    )
    picture, provider = await draw(ArkSeedream, using, events)
    assert provider.requests[0].headers["accept"] == "text/event-stream"
    assert picture.width == 640


@pytest.mark.parametrize(
    ("reply", "fault"),
    [
        (httpx.Response(200, json={"data": [], **broken("InternalServiceError")}), Fault.UNAVAILABLE),
        (httpx.Response(200, json={"data": [broken("OutputImageSensitiveContentDetected")]}), Fault.REFUSED),
        (httpx.Response(400, json=broken("InputTextSensitiveContentDetected")), Fault.REFUSED),
        (stream({"type": "image_generation.completed", "usage": {"generated_images": 0}}), Fault.GARBLED),
        (stream({"type": "image_generation.partial_failed", **broken("OutputImageRiskDetection")}), Fault.REFUSED),
        (httpx.Response(200, json={"data": [{"b64_json": base64.b64encode(b"no picture").decode()}]}), Fault.GARBLED),
    ],
)
async def test_seedreams_failures_are_told_apart(reply: httpx.Response, fault: Fault) -> None:
    assert (await refused(ArkSeedream, channel("ark_seedream"), reply)).fault is fault


def drawn(url: str = STORE) -> dict[str, Any]:
    return {"output": {"choices": [{"message": {"content": [{"image": url}]}}]}, "request_id": "r-1"}


def dashscope(*states: dict[str, Any]) -> Handler:
    left = list(states)

    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.host == "pictures.example":
            assert "authorization" not in request.headers
            return httpx.Response(200, content=png())
        return httpx.Response(200, json=left.pop(0))

    return answer


def task(status: str, **output: object) -> dict[str, Any]:
    return {"output": {"task_id": "t-1", "task_status": status, **output}, "request_id": "r-1"}


async def test_newer_models_of_dashscope_answer_at_once_with_an_address() -> None:
    using = channel("dashscope_images", "qwen-image-2.0", extra={"parameters": {"prompt_extend": False}})
    picture, provider = await draw(DashScopeImages, using, dashscope(drawn()))
    sent, request = provider.body(), provider.requests[0]
    assert request.url.path.endswith("/multimodal-generation/generation")
    assert sent["parameters"] == {"size": "1200*624", "n": 1, "watermark": False, "prompt_extend": False}
    assert sent["input"]["messages"][0]["content"] == [{"text": BRIEF.prompt}]
    assert (picture.width, picture.request_id) == (640, "r-1")


async def test_older_models_give_a_task_that_is_asked_for() -> None:
    using = channel("dashscope_images", "wanx2.1-t2i-turbo")
    picture, provider = await draw(
        DashScopeImages, using, dashscope(task("PENDING"), task("SUCCEEDED", results=[{"url": STORE}]))
    )
    first, poll, fetch = provider.requests
    assert (first.headers["x-dashscope-async"], first.url.path.rpartition("/")[2]) == ("enable", "image-synthesis")
    assert json.loads(first.content)["input"] == {"prompt": BRIEF.prompt}
    assert (poll.method, poll.url.path) == ("GET", "/v1/tasks/t-1")
    assert fetch.url.host == "pictures.example"
    assert picture.width == 640


async def test_one_good_picture_among_failed_ones_is_taken() -> None:
    results = [{"code": "DataInspectionFailed", "message": "x"}, {"url": STORE}]
    using = channel("dashscope_images", "wanx")
    picture, _ = await draw(DashScopeImages, using, dashscope(task("SUCCEEDED", results=results)))
    assert picture.width == 640


@pytest.mark.parametrize(
    ("state", "fault", "remedy"),
    [
        (task("UNKNOWN"), Fault.UNAVAILABLE, Remedy.RESUBMIT),
        (task("CANCELED"), Fault.UNAVAILABLE, Remedy.RESUBMIT),
        (task("FAILED", code="DataInspectionFailed", message="x"), Fault.REFUSED, None),
        (task("FAILED"), Fault.UNAVAILABLE, None),
        (task("SUCCEEDED", results=[{"code": "InternalError", "message": "x"}]), Fault.UNAVAILABLE, None),
        (task("SUCCEEDED", results=[]), Fault.GARBLED, None),
    ],
)
async def test_a_task_without_a_picture_is_told_apart(
    state: dict[str, Any], fault: Fault, remedy: Remedy | None
) -> None:
    error = await refused(DashScopeImages, channel("dashscope_images", "wanx"), dashscope(state))
    assert (error.fault, error.remedy) == (fault, remedy)


PHOTO = {
    "urls": {"regular": STORE, "full": "https://pictures.example/full.png"},
    "links": {"download_location": "https://api.example/v1/photos/p/download?ixid=1"},
    "user": {"name": "Jane Doe", "links": {"html": "https://unsplash.com/@jane"}},
}


def stock(*found: list[Any], field: str) -> Handler:
    left = list(found)

    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.host == "pictures.example":
            assert "authorization" not in request.headers
            return httpx.Response(200, content=png())
        if "/download" in request.url.path:
            return httpx.Response(200, json={"url": STORE})
        return httpx.Response(200, json={field: left.pop(0)})

    return answer


async def test_unsplash_is_searched_credited_and_told_of_the_use() -> None:
    picture, provider = await draw(Unsplash, channel("unsplash"), stock([PHOTO], field="results"))
    search, fetch, report = provider.requests
    assert dict(search.url.params)["query"] == "The best green tea of the year"
    assert dict(search.url.params)["orientation"] == "landscape"
    assert (search.headers["authorization"], search.headers["accept-version"]) == (f"Client-ID {KEY}", "v1")
    assert fetch.url.host == "pictures.example"
    assert (report.url.path, report.headers["authorization"]) == ("/v1/photos/p/download", f"Client-ID {KEY}")
    assert picture.credit.startswith("Photo by Jane Doe (https://unsplash.com/@jane?utm_source=citeloop&")
    assert "on Unsplash" in picture.credit


async def test_the_key_of_unsplash_goes_to_no_other_host() -> None:
    elsewhere = {**PHOTO, "links": {"download_location": "https://evil.example/download"}}
    _, provider = await draw(Unsplash, channel("unsplash"), stock([elsewhere], field="results"))
    assert [one.url.host for one in provider.requests] == ["api.example", "pictures.example"]


async def test_a_failed_report_of_the_use_costs_no_picture() -> None:
    answer = stock([PHOTO], field="results")

    def failing(request: httpx.Request) -> httpx.Response:
        if "/download" in request.url.path:
            raise httpx.ConnectError("gone")
        return answer(request)

    picture, _ = await draw(Unsplash, channel("unsplash"), failing)
    assert picture.width == 640


@pytest.mark.parametrize(("kind", "field"), [(Unsplash, "results"), (Pexels, "photos")])
async def test_a_search_without_a_photo_is_broadened_once(kind: Kind, field: str) -> None:
    using = channel(kind.__name__.lower()) if isinstance(kind, type) else channel("unsplash")
    photo = {**PHOTO, "src": {"large2x": STORE}, "photographer": "Jane Doe", "url": "https://pexels.com/p"}
    picture, provider = await draw(kind, using, stock([], [photo], field=field))
    assert dict(provider.requests[1].url.params)["query"] == "The best"
    assert "Jane Doe" in picture.credit
    error = await refused(kind, using, stock([], [], field=field))
    assert error.fault is Fault.INVALID
    assert "no photograph" in error.message


async def test_pexels_takes_its_key_bare() -> None:
    photo = {"src": {"large": STORE}, "photographer": "Jane Doe", "url": "https://pexels.com/p"}
    picture, provider = await draw(Pexels, channel("pexels"), stock([photo], field="photos"))
    assert provider.requests[0].headers["authorization"] == KEY
    assert picture.credit == "Photo by Jane Doe on Pexels (https://pexels.com/p)"


async def test_an_hourly_limit_in_plain_text_waits_for_the_hour() -> None:
    limited = httpx.Response(403, text="Rate Limit Exceeded", headers={"x-ratelimit-limit": "50"})
    error = await refused(Unsplash, channel("unsplash"), limited)
    assert (error.fault, error.until) == (Fault.RATE_LIMITED, "next_hour")
    assert error.delay is not None
    assert (await refused(Unsplash, channel("unsplash"), httpx.Response(403, json={}))).fault is Fault.UNAUTHORIZED
