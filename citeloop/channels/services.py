"""Every service whose replies are known, by the names of the fault file, and how a reply of it is judged."""

from dataclasses import dataclass

from citeloop.channels import model_replies as models
from citeloop.channels import site_replies as sites
from citeloop.channels.errors import ChannelError, Fault
from citeloop.channels.handling import Judgement, judgement_of
from citeloop.channels.model_replies import Judge
from citeloop.channels.reply import HttpReply

_NO_REPLY = "no reply came"
_MAYBE_PUBLISHED = "no reply came, but the request may have been carried out: look it up before sending it again"
_SONAR = (
    "Sonar chat completions were announced to end on 2026-09-27, and what answers there since is not known: "
    "set dialect to openai_responses and base_url to https://api.perplexity.ai/v1"
)


@dataclass(frozen=True, slots=True)
class Service:
    """silent: what it means when no reply came, or none whose status is known."""

    judge: Judge
    silent: tuple[Fault, str] = (Fault.UNAVAILABLE, _NO_REPLY)


_CHAT = Service(models.by_shape(models.judge_chat))
_PICTURES = Service(models.by_shape(models.judge_picture))
_MUTATION = (Fault.UNKNOWN, _MAYBE_PUBLISHED)

SERVICES: dict[str, Service] = {
    "anthropic": Service(models.by_shape(models.judge_turn)),
    "baidu_ai_search": _CHAT,
    "dashscope": _CHAT,
    "dashscope_image": Service(models.by_shape(models.judge_task)),
    "dashscope_native": Service(models.by_shape(models.judge_generation)),
    "deepseek": _CHAT,
    "devto": Service(sites.judge_devto, _MUTATION),
    "directus": Service(sites.judge_directus, _MUTATION),
    "gemini": Service(models.by_shape(models.judge_gemini)),
    "generic_http": Service(models.by_shape(models.judge_anything)),
    "ghost": Service(sites.judge_ghost, _MUTATION),
    "halo": Service(sites.judge_halo, _MUTATION),
    "hunyuan": _CHAT,
    "hunyuan_native": Service(models.judge_tencent),
    "indexnow": Service(sites.judge_indexnow),
    "llm_api_edge": _CHAT,
    "moonshot": _CHAT,
    "openai": _CHAT,
    "openai_compatible": _CHAT,
    "openai_image": _PICTURES,
    "openrouter_like": _CHAT,
    "perplexity": Service(models.by_shape(models.judge_responses), (Fault.INVALID, _SONAR)),
    "pexels": Service(models.judge_pexels),
    "qianfan": _CHAT,
    "sensenova_like": _CHAT,
    "strapi": Service(sites.judge_strapi, _MUTATION),
    "tencent_search": Service(models.judge_tencent),
    "typecho": Service(sites.judge_typecho, _MUTATION),
    "unsplash": Service(models.judge_unsplash),
    "volcengine_ark": _CHAT,
    "volcengine_ark_image": _PICTURES,
    "webhook": Service(sites.judge_webhook),
    "webhook_in": Service(sites.judge_callback),
    "wechat_mp": Service(sites.judge_wechat, _MUTATION),
    "wordpress": Service(sites.judge_wordpress, _MUTATION),
    "wordpress_com": Service(sites.judge_wordpress, _MUTATION),
    "wordpress_media": Service(sites.judge_wordpress_media),
    "zhipu": _CHAT,
}


def judgement(service: str, reply: HttpReply) -> Judgement:
    """What is to be done with `reply`. A service that is not known is judged by the shape of its reply."""
    known = SERVICES.get(service, SERVICES["generic_http"])
    try:
        return known.judge(reply)
    except ChannelError as error:
        return judgement_of(error)


def judgement_of_silence(service: str) -> Judgement:
    """The same where no reply came."""
    fault, words = SERVICES.get(service, SERVICES["generic_http"]).silent
    return judgement_of(ChannelError(fault, words, sent=True))
