"""Pictures from outside are written anew; the title card needs nothing from outside."""

import base64
import io
import json

import httpx
import pytest
from PIL import Image

from citeloop.channels.errors import ChannelError, Fault
from citeloop.channels.illustrators.card import TitleCard
from citeloop.channels.illustrators.fonts import Fonts
from citeloop.channels.illustrators.openai_images import OpenAIImages
from citeloop.channels.pictures import clean_picture
from citeloop.channels.ports import PictureBrief, PictureFile
from citeloop.channels.wire import Wire
from citeloop.models.channel import Price, Role
from tests.channels.settings import KEY, call, spec

BRIEF = PictureBrief(prompt="tea", title="Tea for two", alt="tea")
NO_FONTS = Fonts(())


def picture(kind: str = "PNG", size: tuple[int, int] = (64, 48), mode: str = "RGB", **options: object) -> bytes:
    out = io.BytesIO()
    Image.new(mode, size, "red").save(out, kind, **options)
    return out.getvalue()


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF", "WEBP"])
def test_each_kind_is_written_anew(kind: str) -> None:
    clean = clean_picture(picture(kind))
    assert clean.media_type in {"image/jpeg", "image/png"}
    assert (clean.width, clean.height) == (64, 48)


def test_exif_is_dropped_after_its_rotation_was_applied() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    exif[0x010E] = "taken at 48.1, 11.5"
    clean = clean_picture(picture("JPEG", exif=exif.tobytes()))
    with Image.open(io.BytesIO(clean.data)) as again:
        assert not again.getexif()
        assert again.size == (48, 64)
    assert b"taken at" not in clean.data


def test_transparency_is_kept() -> None:
    assert clean_picture(picture(mode="RGBA")).media_type == "image/png"


def test_a_huge_picture_is_made_smaller() -> None:
    clean = clean_picture(picture(size=(4000, 1000)))
    assert (clean.width, clean.height) == (2048, 512)


def bomb() -> bytes:
    """A PNG of a few kilobytes that claims 60,000 × 60,000 pixels."""
    data = bytearray(picture())
    data[16:24] = (60_000).to_bytes(4, "big") * 2
    return bytes(data)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"<html>not found</html>",
        b"\x89PNG\r\n\x1a\n",
        picture()[:60],
        picture("JPEG")[:200],
        picture(size=(4, 4)),
        b"<svg xmlns='http://www.w3.org/2000/svg'/>",
        bomb(),
        b"RIFF\x00\x00\x00\x00WEBPVP8 ",
    ],
    ids=["nothing", "html", "only a header", "half a PNG", "half a JPEG", "too small", "svg", "bomb", "empty webp"],
)
def test_what_is_no_whole_picture_is_garbled(data: bytes) -> None:
    with pytest.raises(ChannelError) as raised:
        clean_picture(data)
    assert raised.value.fault is Fault.GARBLED


async def illustrate(*responses: httpx.Response) -> tuple[PictureFile, list[httpx.Request]]:
    requests: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        requests.append(request)
        return responses[len(requests) - 1]

    channel = spec(
        "https://images.example/v1", roles=frozenset({Role.ILLUSTRATE}), dialect="openai_images", price=Price(call=40)
    )
    async with httpx.AsyncClient(transport=httpx.MockTransport(answer)) as http:
        wire = Wire(http, channel.name)
        return await OpenAIImages(channel, KEY, wire, wire).illustrate(BRIEF, call()), requests


async def test_a_picture_in_base64_is_taken() -> None:
    body = {"data": [{"b64_json": base64.b64encode(picture()).decode()}]}
    made, requests = await illustrate(httpx.Response(200, json=body))
    assert (made.width, made.height, made.cost.micros) == (64, 48, 40)
    asked = json.loads(requests[0].content)
    assert (asked["size"], asked["n"], asked["prompt"]) == ("1200x624", 1, "tea")


async def test_a_picture_by_address_is_fetched_at_once_and_without_our_key() -> None:
    body = {"data": [{"url": "https://cdn.example/x.png?sig=1"}]}
    made, requests = await illustrate(httpx.Response(200, json=body), httpx.Response(200, content=picture("WEBP")))
    assert made.width == 64
    assert "authorization" not in requests[1].headers


async def test_an_error_inside_a_good_reply_is_found() -> None:
    body = {"data": [{"error": {"code": "OutputImageSensitiveContentDetected", "message": "blocked"}}]}
    with pytest.raises(ChannelError) as raised:
        await illustrate(httpx.Response(200, json=body))
    assert raised.value.fault is Fault.REFUSED


@pytest.mark.parametrize("data", [[], [{}], [{"b64_json": "%%%"}], None])
async def test_a_reply_without_a_picture_is_garbled(data: object) -> None:
    with pytest.raises(ChannelError) as raised:
        await illustrate(httpx.Response(200, json={"created": 1, "data": data}))
    assert raised.value.fault is Fault.GARBLED


async def test_an_address_that_has_expired_says_so() -> None:
    body = {"data": [{"url": "https://cdn.example/x.png"}]}
    with pytest.raises(ChannelError) as raised:
        await illustrate(httpx.Response(200, json=body), httpx.Response(404, text="gone"))
    assert raised.value.status == 404


def test_the_same_brief_gives_the_same_card() -> None:
    card = TitleCard(brand="Acme", fonts=NO_FONTS)
    assert card.draw(BRIEF).data == card.draw(BRIEF).data
    assert card.draw(BRIEF).data != card.draw(BRIEF.model_copy(update={"title": "Coffee"})).data


@pytest.mark.parametrize("title", ["什么是 GEO", "", "😀", "a" * 500, "word " * 200, "多" * 300, "a\u0000\ud800b"])
@pytest.mark.parametrize("fonts", [NO_FONTS, Fonts.of_this_machine()], ids=["no fonts", "this machine's"])
def test_a_card_is_drawn_for_any_title(title: str, fonts: Fonts) -> None:
    drawn = TitleCard(brand="品牌 Acme", colours=("#102030", "#ff8800"), fonts=fonts).draw(
        BRIEF.model_copy(update={"title": title})
    )
    with Image.open(io.BytesIO(drawn.data)) as image:
        assert image.size == (1200, 630)


def test_without_a_font_that_has_them_characters_are_left_out_and_not_boxed() -> None:
    latin = TitleCard(brand="Acme", fonts=NO_FONTS)
    assert (
        latin.draw(BRIEF.model_copy(update={"title": "什么是 GEO"})).data
        == latin.draw(BRIEF.model_copy(update={"title": "GEO"})).data
    )


def test_the_brands_colours_are_the_cards_ground() -> None:
    drawn = TitleCard(colours=("#102030", "#ff8800"), fonts=NO_FONTS).draw(BRIEF)
    with Image.open(io.BytesIO(drawn.data)) as image:
        assert image.convert("RGB").getpixel((2, 600)) == (0x10, 0x20, 0x30)
