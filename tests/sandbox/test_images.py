"""Pictures in OpenAI's shape."""

import base64
import io

from PIL import Image

from tests.sandbox.running import Sandbox

PATH = "/images/v1/images/generations"


async def test_a_picture_is_a_real_png_of_the_size_asked_for(sandbox: Sandbox) -> None:
    async with sandbox.client() as client:
        reply = await client.post(PATH, json={"model": "m", "prompt": "vectors", "size": "320x200"})
    data = base64.b64decode(reply.json()["data"][0]["b64_json"])
    with Image.open(io.BytesIO(data)) as image:
        assert (image.format, image.size) == ("PNG", (320, 200))


async def test_the_same_prompt_is_drawn_alike_and_another_differs(sandbox: Sandbox) -> None:
    async with sandbox.client() as client:
        drawn = [
            (await client.post(PATH, json={"model": "m", "prompt": text, "size": "64x64"})).json()["data"]
            for text in ("a", "a", "b")
        ]
    assert drawn[0] == drawn[1] != drawn[2]


async def test_pictures_are_limited_like_everything_else(sandbox: Sandbox) -> None:
    sandbox.set("images", rate=0.5, burst=1)
    async with sandbox.client() as client:
        body = {"model": "m", "prompt": "a", "size": "64x64"}
        statuses = [(await client.post(PATH, json=body)).status_code for _ in range(2)]
    assert statuses == [200, 429]
