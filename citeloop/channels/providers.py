"""What is particular about each provider, as data: one row per provider and dialect it speaks.

A channel names its provider by `provider = "…"`, or is recognised by the host of its base_url. A provider that is
not here needs no row: it states base_url, key_env and `extra` in channels.toml. Sources: tags as in docs.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from pydantic import JsonValue

from citeloop.models.channel import Trial

_DOCUMENTED, _GUESS = Trial.DOCUMENTED_SHAPE, Trial.GUESS


@dataclass(frozen=True, slots=True)
class Provider:
    """search: request fields that make an answer engine search; a field that `extra` names is left to `extra`.

    always: request fields that every call needs. lists_models: whether `GET {base_url}/models` names all of them.
    """

    name: str
    dialect: str
    base_url: str
    key_env: str
    tested: Trial
    source: str
    token_limit_field: str = ""
    search: Mapping[str, JsonValue] = field(default_factory=dict)
    always: Mapping[str, JsonValue] = field(default_factory=dict)
    lists_models: bool = False
    note: str = ""


_WEB_SEARCH: dict[str, JsonValue] = {"tools": [{"type": "web_search"}]}
_ANTHROPIC_SEARCH: dict[str, JsonValue] = {
    "tools": [{"type": "web_search_20250305", "name": "web_search", "max_uses": 5}]
}
_GLM_SEARCH: dict[str, JsonValue] = {
    "tools": [
        {
            "type": "web_search",
            "web_search": {"enable": True, "search_engine": "search_std", "search_result": True},
        }
    ]
}
_QWEN_SEARCH: dict[str, JsonValue] = {
    "enable_search": True,
    "search_options": {
        "forced_search": True,
        "enable_source": True,
        "enable_citation": True,
        "citation_format": "[ref_<number>]",
    },
}
_ARK = "https://ark.cn-beijing.volces.com/api/v3"
_DASHSCOPE = "https://dashscope.aliyuncs.com"

PROVIDERS: tuple[Provider, ...] = (
    Provider(
        "deepseek", "openai_chat", "https://api.deepseek.com/v1", "DEEPSEEK_API_KEY", _DOCUMENTED,
        "api-docs.deepseek.com chat-completion, 2026-10", "max_tokens", lists_models=True,
        note="this form does not search; use the anthropic_messages dialect as an answer engine",
    ),
    Provider(
        "deepseek", "anthropic_messages", "https://api.deepseek.com/anthropic/v1", "DEEPSEEK_API_KEY", _DOCUMENTED,
        "github deepseek-ai/deepseek-harness b150a551b8, 2026-08-21", search=_ANTHROPIC_SEARCH,
    ),
    Provider(
        "deepseek", "openai_responses", "https://api.deepseek.com", "DEEPSEEK_API_KEY", _GUESS,
        "one public GEO monitor uses it, another repository says that the search is ignored, 2026",
        search={**_WEB_SEARCH, "tool_choice": {"type": "web_search"}}, lists_models=True,
    ),
    Provider(
        "ark", "openai_chat", _ARK, "ARK_API_KEY", _DOCUMENTED,
        "github volcengine/volcengine-python-sdk b5be43b5, 2026-07-23", "max_tokens",
    ),
    Provider(
        "ark", "openai_responses", _ARK, "ARK_API_KEY", _DOCUMENTED,
        "github volcengine/volcengine-python-sdk b5be43b5, 2026-07-23", search=_WEB_SEARCH,
        note='for the answers of the Doubao app: extra = { tools = [{ type = "doubao_app", feature = … }] }',
    ),
    Provider(
        "ark", "ark_seedream", _ARK, "ARK_API_KEY", _DOCUMENTED,
        "github volcengine/volcengine-python-sdk b5be43b5, 2026-07-23",
    ),
    Provider(
        "dashscope", "openai_chat", f"{_DASHSCOPE}/compatible-mode/v1", "DASHSCOPE_API_KEY", _DOCUMENTED,
        "alibabacloud.com/help model-studio, 2026-10-23", "max_tokens", search={"enable_search": True},
        note="this form names no sources; use the dashscope dialect as an answer engine",
    ),
    Provider(
        "dashscope", "openai_responses", f"{_DASHSCOPE}/compatible-mode/v1", "DASHSCOPE_API_KEY", _GUESS,
        "alibabacloud.com/help model-studio web-search, 2026-10-23: tool named, reply not shown", search=_WEB_SEARCH,
    ),
    Provider(
        "dashscope", "dashscope", f"{_DASHSCOPE}/api/v1", "DASHSCOPE_API_KEY", _DOCUMENTED,
        "alibabacloud.com/help model-studio web-search, 2026-10-23; dashscope-sdk-python c0d7a0b",
        search={"parameters": _QWEN_SEARCH},
    ),
    Provider(
        "dashscope", "dashscope_images", f"{_DASHSCOPE}/api/v1", "DASHSCOPE_API_KEY", _DOCUMENTED,
        "alibabacloud.com/help text-to-image-v2, 2026-01-19; dashscope-sdk-python c0d7a0b",
    ),
    Provider(
        "moonshot", "openai_chat", "https://api.moonshot.cn/v1", "MOONSHOT_API_KEY", _DOCUMENTED,
        "platform.moonshot.cn/docs; github MoonshotAI/kimi-code d723cc47e, 2026-08-22", "max_tokens",
        lists_models=True, note="this form does not search; use the kimi_search dialect as an answer engine",
    ),
    Provider(
        "moonshot", "kimi_search", "https://api.moonshot.cn/v1", "MOONSHOT_API_KEY", _GUESS,
        "three public clients of the web-search formula, 2026-08", "max_tokens", lists_models=True,
    ),
    Provider(
        "zhipu", "openai_chat", "https://open.bigmodel.cn/api/paas/v4", "ZHIPU_API_KEY", _DOCUMENTED,
        "github zai-org/z-ai-sdk-python d8d898b, 2026-04-08", "max_tokens", search=_GLM_SEARCH,
    ),
    Provider(
        "hunyuan", "openai_chat", "https://api.hunyuan.cloud.tencent.com/v1", "HUNYUAN_API_KEY", _DOCUMENTED,
        "cloud.tencent.com/document/product/1729/111007, 2026-01-08", "max_tokens",
        search={"enable_enhancement": True},
    ),
    Provider(
        "qianfan", "openai_chat", "https://qianfan.baidubce.com/v2/ai_search", "QIANFAN_API_KEY", _GUESS,
        "ai.baidu.com/ai-doc/AppBuilder/wm88pf14e; six public clients, 2026", "max_tokens",
        search={"search_source": "baidu_search_v2", "enable_corner_markers": True},
        note="always searches; for writing alone set base_url to https://qianfan.baidubce.com/v2",
    ),
    Provider(
        "openai", "openai_chat", "https://api.openai.com/v1", "OPENAI_API_KEY", _DOCUMENTED,
        "github openai/openai-python e43b4224, 2026-08-21", "max_completion_tokens", lists_models=True,
        note="only its search models search here; use the openai_responses dialect as an answer engine",
    ),
    Provider(
        "openai", "openai_responses", "https://api.openai.com/v1", "OPENAI_API_KEY", _DOCUMENTED,
        "github openai/openai-openapi f85dbe2, 2026-08-21",
        search={**_WEB_SEARCH, "include": ["web_search_call.action.sources"]}, always={"store": False},
        lists_models=True,
    ),
    Provider(
        "openai", "openai_images", "https://api.openai.com/v1", "OPENAI_API_KEY", _DOCUMENTED,
        "github openai/openai-python e43b4224, 2026-08-21", lists_models=True,
    ),
    Provider(
        "perplexity", "openai_chat", "https://api.perplexity.ai", "PERPLEXITY_API_KEY", _DOCUMENTED,
        "github perplexityai/perplexity-py 3485870, 2026-06-08", "max_tokens",
        note="announced to end on 2026-09-27; use the openai_responses dialect",
    ),
    Provider(
        "perplexity", "openai_responses", "https://api.perplexity.ai/v1", "PERPLEXITY_API_KEY", _DOCUMENTED,
        "github perplexityai/perplexity-py 3485870, 2026-06-08", search=_WEB_SEARCH,
    ),
    Provider(
        "anthropic", "anthropic_messages", "https://api.anthropic.com/v1", "ANTHROPIC_API_KEY", _DOCUMENTED,
        "github anthropics/anthropic-sdk-python 009b0353, 2026-08-07", search=_ANTHROPIC_SEARCH, lists_models=True,
    ),
    Provider(
        "gemini", "gemini", "https://generativelanguage.googleapis.com/v1beta", "GEMINI_API_KEY", _DOCUMENTED,
        "github googleapis/python-genai 66807187, 2026-08-21", search={"tools": [{"google_search": {}}]},
        lists_models=True,
    ),
    Provider(
        "gemini", "openai_chat", "https://generativelanguage.googleapis.com/v1beta/openai", "GEMINI_API_KEY", _GUESS,
        "named in google's compatibility page only", "max_tokens",
        note="this form does not search; use the gemini dialect as an answer engine",
    ),
    Provider(
        "unsplash", "unsplash", "https://api.unsplash.com", "UNSPLASH_ACCESS_KEY", _DOCUMENTED,
        "api-evangelist copy of its OpenAPI, 2026-08-22",
    ),
    Provider(
        "pexels", "pexels", "https://api.pexels.com/v1", "PEXELS_API_KEY", _GUESS,
        "github ngandu-dev/pexels, 2026-08-19; the field list is from memory",
    ),
)  # fmt: skip

NAMES = tuple(sorted({one.name for one in PROVIDERS}))


def provider_for(name: str, dialect: str) -> Provider | None:
    """The row of a named provider in a dialect; None if it does not speak it."""
    return next((one for one in PROVIDERS if one.name == name and one.dialect == dialect), None)


def name_by_host(base_url: str) -> str:
    """The provider whose API stands at the host of `base_url`, or an empty string."""
    host = urlsplit(base_url).hostname
    return next((one.name for one in PROVIDERS if urlsplit(one.base_url).hostname == host), "")


def dialects_of(name: str) -> list[str]:
    return [one.dialect for one in PROVIDERS if one.name == name]


def search_fields(name: str, dialect: str) -> dict[str, JsonValue]:
    row = provider_for(name, dialect)
    return dict(row.search) if row else {}


def always_fields(name: str, dialect: str) -> dict[str, JsonValue]:
    row = provider_for(name, dialect)
    return dict(row.always) if row else {}


def token_limit_field(name: str, dialect: str) -> str:
    row = provider_for(name, dialect)
    return (row.token_limit_field if row else "") or "max_tokens"


CALLS_PER_DISPATCH: Mapping[str, int] = {"kimi_search": 4, "unsplash": 2}
"""Provider requests that one task usually makes, by dialect; the others make one, and polls are not counted.

Kimi: its tool list, a chat, a search, a chat with what was found. Unsplash: a search, and the notice of use.
"""
