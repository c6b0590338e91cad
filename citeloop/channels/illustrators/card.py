"""The built-in title card: the article's title on the brand's colours, drawn here and bought nowhere."""

import asyncio
import hashlib
import io
import re
from dataclasses import dataclass

from PIL import Image, ImageDraw

from citeloop.channels.illustrators.fonts import Fonts, Typeface
from citeloop.channels.ports import Call, PictureBrief, PictureFile

_PALETTES = (
    ("#12355b", "#2f80c2"),
    ("#1f4037", "#3f9c7a"),
    ("#3b1f4a", "#8a4fa8"),
    ("#4a2c17", "#c0752f"),
    ("#2b2d42", "#6c7a9c"),
)
_HEX = re.compile(r"#[0-9a-fA-F]{6}")
_CJK = r"\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef"
_UNBREAKABLE = re.compile(rf"[^\s{_CJK}]+|[{_CJK}]|\s+")
_NOT_AT_LINE_START = "，。、；：？！）】》”’,.;:?!)]}"
_LARGEST, _SMALLEST = 76, 34
_MOST_LINES = 4
_LONGEST_TITLE = 200
_LINE_HEIGHT = 1.3


@dataclass(frozen=True)
class TitleCard:
    """An illustrator without a provider: the same brief gives the same bytes.

    colours: ground and accent as `#rrggbb`; None picks a pair by the brand's name.
    """

    brand: str = ""
    colours: tuple[str, str] | None = None
    fonts: Fonts | None = None

    async def illustrate(self, brief: PictureBrief, call: Call) -> PictureFile:  # noqa: ARG002 - the port's
        return await asyncio.to_thread(self.draw, brief)

    def draw(self, brief: PictureBrief) -> PictureFile:
        fonts = self.fonts or Fonts.of_this_machine()
        size = (max(brief.width, 320), max(brief.height, 180))
        ground, accent = self._colours(brief.title)
        picture = Image.new("RGB", size, ground)
        pen = ImageDraw.Draw(picture)
        _ornament(pen, size, accent)
        margin = size[0] // 14
        _write_title(pen, brief.title, fonts, size, margin)
        self._write_brand(pen, fonts, size, margin, accent)
        out = io.BytesIO()
        picture.save(out, "PNG", optimize=True)
        return PictureFile(data=out.getvalue(), media_type="image/png", width=size[0], height=size[1])

    def _colours(self, title: str) -> tuple[str, str]:
        if self.colours and all(_HEX.fullmatch(one) for one in self.colours):
            return self.colours
        digest = hashlib.sha256((self.brand or title).encode("utf-8", "replace")).digest()
        return _PALETTES[digest[0] % len(_PALETTES)]

    def _write_brand(
        self, pen: ImageDraw.ImageDraw, fonts: Fonts, size: tuple[int, int], margin: int, accent: str
    ) -> None:
        face = fonts.at(size[1] // 20)
        bottom = size[1] - margin
        pen.rectangle((margin, bottom - size[1] // 9, margin + size[0] // 12, bottom - size[1] // 9 + 5), fill=accent)
        _write_line(pen, face, " ".join(face.drawable(self.brand).split()), (margin, bottom - size[1] // 18))


def _ornament(pen: ImageDraw.ImageDraw, size: tuple[int, int], accent: str) -> None:
    """A band at the right edge and two quarter circles: a card that is whole even without a drawable title."""
    width, height = size
    radius = height * 3 // 8
    pen.pieslice((width - radius, -radius, width + radius, radius), 90, 180, fill=accent)
    pen.rectangle((width - width // 60, radius, width, height), fill=accent)
    radius = height // 4
    pen.arc((width - radius, height - radius, width + radius, height + radius), 180, 270, fill=accent, width=6)


def _write_title(pen: ImageDraw.ImageDraw, title: str, fonts: Fonts, size: tuple[int, int], margin: int) -> None:
    title = title[:_LONGEST_TITLE]
    room = size[0] - 2 * margin - size[1] // 4
    for points in range(_LARGEST * size[1] // 630, _SMALLEST * size[1] // 630 - 1, -4):
        face = fonts.at(max(points, 8))
        lines = _wrapped(" ".join(face.drawable(title).split()), face, room)
        if len(lines) <= _MOST_LINES and len(lines) * points * _LINE_HEIGHT <= size[1] * 0.6:
            break
    if len(lines) > _MOST_LINES:
        lines = [*lines[: _MOST_LINES - 1], lines[_MOST_LINES - 1][:-1] + face.drawable("…")]
    top = margin
    for line in lines:
        _write_line(pen, face, line, (margin, top))
        top += round(points * _LINE_HEIGHT)


def _wrapped(text: str, face: Typeface, room: int) -> list[str]:
    """Latin breaks between words, CJK between any two characters, but no line begins with closing punctuation."""
    lines, line = [], ""
    for piece in _UNBREAKABLE.findall(text):
        for part in _fitting(piece, face, room):
            if line and part not in _NOT_AT_LINE_START and face.width(line + part) > room:
                lines.append(line.rstrip())
                line = ""
            line += part if line or not part.isspace() else ""
    return [*lines, line.rstrip()] if line.strip() else lines


def _fitting(piece: str, face: Typeface, room: int) -> list[str]:
    """A word wider than the card, such as an address, is cut into letters."""
    return [piece] if face.width(piece) <= room else list(piece)


def _write_line(pen: ImageDraw.ImageDraw, face: Typeface, line: str, place: tuple[int, int]) -> None:
    left = float(place[0])
    baseline = place[1] + max((one.getmetrics()[0] for one in face.faces), default=0)
    for one, run in face.runs(line):
        pen.text((left, baseline), run, font=one, fill="#ffffff", anchor="ls")
        left += one.getlength(run)
