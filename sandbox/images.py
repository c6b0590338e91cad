"""The image endpoint: OpenAI's shape, a drawn PNG that says it is simulated."""

import asyncio
import base64
import colorsys
import io
import re
import time

from PIL import Image, ImageDraw, ImageFont
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from sandbox.ledger import ServiceEntry
from sandbox.luck import Draw
from sandbox.providers import Service
from sandbox.wire import Gone, Voice, to_json

_SIZE = re.compile(r"(\d{2,4})x(\d{2,4})")
_LARGEST = 2048
_DEFAULT = (1024, 1024)


class PictureAsk(BaseModel):
    model_config = ConfigDict(extra="ignore")

    prompt: str = Field(min_length=1, max_length=32_000)
    size: str = "auto"
    n: int = Field(default=1, ge=1, le=1)

    @property
    def pixels(self) -> tuple[int, int]:
        match = _SIZE.fullmatch(self.size)
        if match is None:
            return _DEFAULT
        return min(_LARGEST, int(match[1])), min(_LARGEST, int(match[2]))


def draw_picture(draw: Draw, size: tuple[int, int]) -> bytes:
    """Bands and discs in colours of the seed's choice, and the word SIMULATED across them."""
    width, height = size
    hue = draw.number("hue")
    image = Image.new("P", size)  # few flat colours: a palette holds them
    colours = [_colour(hue, 0.35, 0.95)]
    pen = ImageDraw.Draw(image)
    pen.fontmode = "1"

    def ink(colour: tuple[int, int, int]) -> int:
        colours.append(colour)
        return len(colours) - 1

    for band in range(6):
        top = int(height * draw.number(f"band {band}"))
        colour = _colour(hue + 0.08 * band, 0.3 + 0.08 * band, 0.85)
        pen.rectangle((0, top, width, top + height // 12), fill=ink(colour))
    for disc in range(5):
        x, y = width * draw.number(f"x {disc}"), height * draw.number(f"y {disc}")
        radius = min(size) * (0.05 + 0.15 * draw.number(f"r {disc}"))
        colour = _colour(hue + 0.5 + 0.05 * disc, 0.5, 0.8)
        pen.ellipse((x - radius, y - radius, x + radius, y + radius), fill=ink(colour))
    font = ImageFont.load_default(size=max(12, width // 10))
    pen.text((width / 2, height / 2), "SIMULATED", font=font, fill=ink((20, 20, 30)), anchor="mm")
    image.putpalette([part for colour in colours for part in colour])
    out = io.BytesIO()
    image.save(out, format="PNG", compress_level=1)
    return out.getvalue()


def _colour(hue: float, saturation: float, value: float) -> tuple[int, int, int]:
    red, green, blue = colorsys.hsv_to_rgb(hue % 1, saturation, value)
    return int(red * 255), int(green * 255), int(blue * 255)


class Images(Service):
    """`POST …/images/generations`. `truncated` and `empty` are a cut PNG and an empty `data` list."""

    async def _serve(self, body: bytes, purchase_id: str, voice: Voice, entry: ServiceEntry) -> None:
        settings = self.settings
        try:
            ask = PictureAsk.model_validate_json(body)
        except ValidationError as error:
            entry.invalid += 1
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"]) or "body"
            await self._fail(voice, self.dialect.invalid(f"{where}: {first['msg']}"))
            return
        if any(word.casefold() in ask.prompt.casefold() for word in settings.refuse):
            entry.faults["refused"] += 1
            entry.refused.append(ask.prompt[:80])
            await self._fail(voice, self.dialect.refused)
            return
        draw = self.desk.luck.draw(self.name, ask.prompt, ask.size)
        kind = draw.one_of("fault", settings.fault_rates())
        if kind:
            entry.faults[kind] += 1
        wait = settings.first_byte_silence + draw.between("first_byte", settings.first_byte)
        if await self._break(kind, voice, settings, wait):
            return
        await voice.wire.sleep(wait)
        look = self.desk.luck.constant("picture", ask.prompt)
        png = await asyncio.to_thread(draw_picture, look, ask.pixels)
        if kind == "truncated":
            png = png[: len(png) // 3]
        data = [] if kind == "empty" else [{"b64_json": base64.b64encode(png).decode()}]
        reply = to_json({"created": int(time.time()), "output_format": "png", "data": data})
        await self._say(reply, voice, broken=kind == "reset")
        if voice.wire.gone.is_set():
            raise Gone
        if not kind:
            self.desk.ledger.paid(self.name, purchase_id)

    async def _say(self, reply: bytes, voice: Voice, *, broken: bool) -> None:
        await voice.start(200, {"content-type": "application/json", "content-length": str(len(reply))})
        middle = len(reply) // 2
        await voice.write(reply[:middle])
        await voice.wire.sleep(self.settings.mid_stream_silence)
        if broken:
            await voice.wire.reset()
        await voice.end(reply[middle:])
