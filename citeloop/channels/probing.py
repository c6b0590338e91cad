"""Whether a channel is reachable, takes its key and knows its model: asked without buying anything."""

from collections.abc import Mapping

from citeloop.channels import providers
from citeloop.channels.asking import bearer, get_json
from citeloop.channels.errors import ChannelError, Fault
from citeloop.channels.foreign import items_at, text_at
from citeloop.channels.illustrators import pexels, unsplash
from citeloop.channels.judging import judge
from citeloop.channels.reply import HttpReply, read_body
from citeloop.channels.wire import HttpRequest
from citeloop.channels.writers import anthropic_messages, gemini
from citeloop.models.channel import ChannelSpec, Role, Trial
from citeloop.models.record import Record

_NOT_OFFERED = frozenset({404, 405})
_PATHS: Mapping[str, str] = {
    "gemini": "models?pageSize=1000",
    "pexels": "curated?per_page=1",
    "unsplash": "photos?per_page=1",
}
_MOST_NAMED = 5


class Probe(Record):
    ok: bool
    problem: str = ""
    """One line with the remedy; empty when all is well."""
    fault: Fault | None = None
    said: str = ""
    """What was found out, in one line; empty when it failed."""
    tested_against: Trial = Trial.GUESS
    notes: tuple[str, ...] = ()
    """What is worth knowing although all is well."""


class Answered(Record):
    """The provider answered and took the key. `models` is empty where it does not list them."""

    models: tuple[str, ...] = ()
    offered: bool = True
    """False: there is nothing at the address to ask, so the key was not tried."""


def probe_request(spec: ChannelSpec, key: str) -> HttpRequest:
    headers = {
        "anthropic_messages": anthropic_messages.headers,
        "gemini": gemini.headers,
        "pexels": pexels.headers,
        "unsplash": unsplash.headers,
    }.get(spec.dialect, bearer)
    return get_json(f"{spec.base_url}/{_PATHS.get(spec.dialect, 'models')}", headers(key))


def decode_probe(reply: HttpReply) -> Answered:
    """Raises ChannelError for everything but a good answer, or the absence of the page."""
    if reply.status in _NOT_OFFERED:
        return Answered(offered=False)
    body = read_body(reply)
    if error := judge(reply, body):
        raise error
    listed = [*items_at(body.json, "data"), *items_at(body.json, "models")]
    names = (text_at(one, "id") or text_at(one, "name") for one in listed)
    return Answered(models=tuple(name.removeprefix("models/") for name in names if name))


def found(spec: ChannelSpec, answered: Answered) -> Probe:
    """A model that a complete list lacks is a failure; where the list may be partial it is a note."""
    row = providers.provider_for(spec.provider, spec.dialect)
    notes = [row.note] if row and row.note and Role.ANSWER in spec.roles else []
    notes += _price_notes(spec)
    if not answered.offered:
        said = f"{spec.base_url} answers; it offers nothing to try the key with"
        return Probe(ok=True, said=said, tested_against=spec.tested_against, notes=tuple(notes))
    said = f"{spec.base_url} answers and takes the key"
    if spec.model in answered.models:
        said += f"; it knows {spec.model}"
    elif answered.models:
        lacking = f"{spec.model} is not among the models it lists"
        if row and row.lists_models:
            some = ", ".join(sorted(answered.models)[:_MOST_NAMED])
            problem = f"{spec.name}: {lacking}; set model to one of them, such as {some}"
            return Probe(ok=False, problem=problem, fault=Fault.INVALID, tested_against=spec.tested_against)
        notes.append(lacking)
    return Probe(ok=True, said=said, tested_against=spec.tested_against, notes=tuple(notes))


def failed(spec: ChannelSpec, error: ChannelError) -> Probe:
    return Probe(ok=False, problem=_explained(spec, error), fault=error.fault, tested_against=spec.tested_against)


def _price_notes(spec: ChannelSpec) -> list[str]:
    if spec.price is not None or spec.tariffs:
        return []
    return [f"no price is known for {spec.model}, so its cost counts as 0; add a line `price = …`"]


def _explained(spec: ChannelSpec, error: ChannelError) -> str:
    if error.fault is Fault.UNAUTHORIZED and error.status is not None:
        where = f"check {spec.key_env}" if spec.key_env else "name its key's variable in key_env"
        return f"{spec.name}: {spec.base_url} refuses the key (HTTP {error.status}); {where}"
    if error.status is None and error.fault in {Fault.UNAVAILABLE, Fault.TIMED_OUT}:
        return (
            f"{spec.name}: cannot reach {spec.base_url} ({error.message.removeprefix('cannot reach ')}); check base_url"
        )
    return error.message if error.message.startswith(spec.name) else f"{spec.name}: {error.message}"
