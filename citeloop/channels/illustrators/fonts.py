"""Fonts of the machine, so that a title is drawn with glyphs it has or not at all."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from PIL import ImageFont

Face = ImageFont.FreeTypeFont
_LATIN = (
    "/usr/share/fonts/truetype/dejavu/DejaVuSans-Bold.ttf",
    "/usr/share/fonts/TTF/DejaVuSans-Bold.ttf",
    "/usr/share/fonts/dejavu-sans-fonts/DejaVuSans-Bold.ttf",
    "/usr/share/fonts/truetype/liberation/LiberationSans-Bold.ttf",
    "/System/Library/Fonts/Supplemental/Arial Bold.ttf",
    "C:/Windows/Fonts/arialbd.ttf",
)
_CJK = (
    ("/usr/share/fonts/opentype/noto/NotoSansCJK-Bold.ttc", 2),
    ("/usr/share/fonts/opentype/noto/NotoSansCJK-Regular.ttc", 2),
    ("/usr/share/fonts/noto-cjk/NotoSansCJK-Bold.ttc", 2),
    ("/usr/share/fonts/google-noto-cjk/NotoSansCJK-Bold.ttc", 2),
    ("/usr/share/fonts/truetype/wqy/wqy-zenhei.ttc", 0),
    ("/usr/share/fonts/truetype/wqy/wqy-microhei.ttc", 0),
    ("/usr/share/fonts/truetype/droid/DroidSansFallbackFull.ttf", 0),
    ("/usr/share/fonts/truetype/arphic/uming.ttc", 0),
    ("/System/Library/Fonts/PingFang.ttc", 0),
    ("/System/Library/Fonts/STHeiti Medium.ttc", 0),
    ("/System/Library/Fonts/Hiragino Sans GB.ttc", 0),
    ("C:/Windows/Fonts/msyhbd.ttc", 0),
    ("C:/Windows/Fonts/msyh.ttc", 0),
    ("C:/Windows/Fonts/simhei.ttf", 0),
)
_NOT_A_CHARACTER = "\uffff"


@dataclass(frozen=True)
class Fonts:
    """Font files in order of preference. Empty: only the plain Latin face that comes with Pillow."""

    files: tuple[tuple[str, int], ...]

    @classmethod
    def of_this_machine(cls) -> "Fonts":
        latin = next(((path, 0) for path in _LATIN if Path(path).is_file()), None)
        cjk = next((one for one in _CJK if Path(one[0]).is_file()), None)
        return cls(tuple(one for one in (latin, cjk) if one is not None))

    def at(self, size: int) -> "Typeface":
        faces: list[Face] = []
        for path, index in self.files:
            try:
                faces.append(ImageFont.truetype(path, size, index=index))
            except OSError:
                continue
        plain = ImageFont.load_default(size)
        if isinstance(plain, ImageFont.FreeTypeFont):
            faces.append(plain)
        return Typeface(tuple(faces))


@dataclass(frozen=True)
class Typeface:
    """Several faces of one size; each character is drawn by the first that has it."""

    faces: tuple[Face, ...]
    _chosen: dict[str, Face | None] = field(default_factory=dict)

    def drawable(self, text: str) -> str:
        """`text` without the characters that no face has: never an empty box."""
        return "".join(char for char in text if char.isspace() or self._face(char) is not None)

    def runs(self, text: str) -> Iterator[tuple[Face, str]]:
        run, current = "", None
        for char in text:
            face = (current if char.isspace() else self._face(char)) or self.faces[0]
            if face is not current and run and current is not None:
                yield current, run
                run = ""
            run, current = run + char, face
        if run and current is not None:
            yield current, run

    def width(self, text: str) -> float:
        return sum(face.getlength(run) for face, run in self.runs(text))

    @cached_property
    def _missing(self) -> tuple[tuple[tuple[int, int], bytes], ...]:
        return tuple(_shape(face, _NOT_A_CHARACTER) for face in self.faces)

    def _face(self, char: str) -> Face | None:
        if char not in self._chosen:
            self._chosen[char] = self._first_with(char)
        return self._chosen[char]

    def _first_with(self, char: str) -> Face | None:
        known: Iterable[tuple[Face, tuple[tuple[int, int], bytes]]] = zip(self.faces, self._missing, strict=True)
        return next((face for face, missing in known if _shape(face, char) != missing), None)


def _shape(face: Face, char: str) -> tuple[tuple[int, int], bytes]:
    mask = face.getmask(char)
    return mask.size, bytes(mask)
