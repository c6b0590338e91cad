"""Pictures from outside are believed only after they were decoded and written anew."""

import io
import warnings
from dataclasses import dataclass

from PIL import Image, ImageOps, UnidentifiedImageError

from citeloop.channels.errors import ChannelError, Fault

DOWNLOAD_LIMIT = 32 * 1024 * 1024
"""Bytes of a reply that carries one picture, base64 included."""
_MOST_PIXELS = 40_000_000
_LONGEST_EDGE = 2048
_SHORTEST_EDGE = 16
_MAGIC = {
    b"\x89PNG\r\n\x1a\n": "PNG",
    b"\xff\xd8\xff": "JPEG",
    b"GIF87a": "GIF",
    b"GIF89a": "GIF",
}


@dataclass(frozen=True, slots=True)
class Clean:
    """PNG where the picture has transparency, JPEG otherwise; no EXIF, no profile, no comment."""

    data: bytes
    media_type: str
    width: int
    height: int


def clean_picture(data: bytes) -> Clean:
    """Raises ChannelError GARBLED for anything that is not a whole PNG, JPEG, WebP or GIF of sane size."""
    kind = _kind(data)
    if kind is None:
        raise ChannelError(Fault.GARBLED, f"no picture: the file begins with {data[:8].hex(' ') or 'nothing'}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            picture = _decoded(data, kind)
    except ChannelError:
        raise
    except (UnidentifiedImageError, Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise ChannelError(Fault.GARBLED, f"the {kind} cannot be decoded: {error}") from None
    except Exception as error:  # noqa: BLE001 - a decoder fed with foreign bytes may raise anything
        raise ChannelError(Fault.GARBLED, f"the {kind} is damaged ({type(error).__name__})") from None
    return _written(picture)


def _kind(data: bytes) -> str | None:
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "WEBP"
    return next((kind for magic, kind in _MAGIC.items() if data.startswith(magic)), None)


def _decoded(data: bytes, kind: str) -> Image.Image:
    with Image.open(io.BytesIO(data), formats=[kind]) as source:
        width, height = source.size
        if width * height > _MOST_PIXELS or min(width, height) < _SHORTEST_EDGE:
            raise ChannelError(Fault.GARBLED, f"a picture of {width}x{height} pixels is not usable")
        source.load()
        ImageOps.exif_transpose(source, in_place=True)
        transparent = source.mode in {"RGBA", "LA", "PA"} or "transparency" in source.info
        mode = "RGBA" if transparent else "RGB"
        return source if source.mode == mode else source.convert(mode)


def _written(picture: Image.Image) -> Clean:
    picture.thumbnail((_LONGEST_EDGE, _LONGEST_EDGE))
    bare = Image.new(picture.mode, picture.size)
    bare.paste(picture)
    out = io.BytesIO()
    if bare.mode == "RGBA":
        bare.save(out, "PNG", optimize=True)
        return Clean(out.getvalue(), "image/png", *bare.size)
    bare.save(out, "JPEG", quality=88, optimize=True)
    return Clean(out.getvalue(), "image/jpeg", *bare.size)
