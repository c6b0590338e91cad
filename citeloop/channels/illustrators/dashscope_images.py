"""Pictures of Qwen and Wan on DashScope: the newer models answer at once, the older ones give a task to poll."""

from urllib.parse import quote

from pydantic import JsonValue

from citeloop.channels.asking import bearer, get_json, post_json
from citeloop.channels.fetching import fetched, picture_file
from citeloop.channels.foreign import merged
from citeloop.channels.patience import Patience, Polling
from citeloop.channels.ports import Call, PictureBrief, PictureFile
from citeloop.channels.tasks import Drawn, Task, decode_task
from citeloop.channels.wire import HttpRequest, Wire
from citeloop.models.channel import ChannelSpec

_TASK_MODELS = ("wanx", "wan2.1", "wan2.2", "qwen-image-plus", "flux", "stable-diffusion")
"""Models of text2image/image-synthesis by the beginning of their names; `extra = { mode = "task" }` names others."""
_OWN_KEYS = frozenset({"mode"})
_GRID = 16
_POLL = 2.0


class DashScopeImages:
    """Tables of `extra`, such as `parameters`, are merged into the request's own."""

    def __init__(self, spec: ChannelSpec, key: str, wire: Wire, checked: Wire) -> None:
        self._spec = spec
        self._key = key
        self._wire = wire
        self._checked = checked

    async def illustrate(self, brief: PictureBrief, call: Call) -> PictureFile:
        """Raises ChannelError."""
        patience = Patience(call)
        drawn = await self._drawn(brief, patience)
        data = await fetched(self._checked, drawn.url, patience.call())
        return await picture_file(self._spec, data, request_id=drawn.request_id)

    async def _drawn(self, brief: PictureBrief, patience: Patience) -> Drawn:
        answer = await self._wire.exchange(self._request(brief), patience.call(), decode_task)
        if isinstance(answer, Task):
            polling = Polling(patience, f"task {answer.id}", first=_POLL, longest=_POLL)
            poll = get_json(f"{self._spec.base_url}/tasks/{quote(answer.id, safe='')}", bearer(self._key))
            while isinstance(answer, Task):
                answer = await polling.ask(lambda call: self._wire.exchange(poll, call, decode_task)) or answer
        return answer

    def _request(self, brief: PictureBrief) -> HttpRequest:
        size = f"{brief.width // _GRID * _GRID}*{brief.height // _GRID * _GRID}"
        parameters: dict[str, JsonValue] = {"size": size, "n": 1, "watermark": False}
        extra = {name: value for name, value in self._spec.extra.items() if name not in _OWN_KEYS}
        if self._is_task():
            body: dict[str, JsonValue] = {"input": {"prompt": brief.prompt}, "parameters": parameters}
            path, headers = "text2image/image-synthesis", {"X-DashScope-Async": "enable"}
        else:
            content: JsonValue = [{"role": "user", "content": [{"text": brief.prompt}]}]
            body = {"input": {"messages": content}, "parameters": parameters}
            path, headers = "multimodal-generation/generation", {}
        sent = merged({"model": self._spec.model, **body}, extra)
        return post_json(f"{self._spec.base_url}/services/aigc/{path}", sent, bearer(self._key) | headers)

    def _is_task(self) -> bool:
        mode = self._spec.extra.get("mode")
        return mode == "task" or (mode is None and self._spec.model.startswith(_TASK_MODELS))
