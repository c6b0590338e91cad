"""What the writers and the engines are told. The instructions themselves stand in prompts/*.md.

Writers read the user message by its tags: keyword, brand, locale, kind, task, facts; for a rewrite also
draft, notes, methods.
"""

import re
from collections.abc import Sequence
from functools import cache
from importlib.resources import files

from citeloop.models.brand import Brand, Entity, Fact
from citeloop.models.ids import prompt_id
from citeloop.models.measure import Prompt
from citeloop.models.plan import Kind, Method
from citeloop.models.record import Record
from citeloop.rules.matching import Matcher

TAGS = ("keyword", "brand", "locale", "kind", "task", "facts", "draft", "notes", "methods")
_OWN_TAG = re.compile(rf"<(?=\s*/?\s*(?:{'|'.join(TAGS)})\b)", re.IGNORECASE)
_ANY_TAG = re.compile(r"<(?=\s*[a-z/!?])", re.IGNORECASE)
_SOURCE_MARK = re.compile(r"\(\s*source\s*:", re.IGNORECASE)
_QUESTION = re.compile(
    r"^(?:what|which|who|how|why|when|where|is|are|can|does|do|should)\b|什么|哪|怎么|怎样|如何|为何|吗$|多少|是否|能否",
    re.IGNORECASE,
)
_MAX_TOKENS = {Kind.SUMMARY: 2000}
_DEFAULT_TOKENS = 6000
_WORDS = {
    Kind.ARTICLE: (600, 1200),
    Kind.FAQ: (500, 1200),
    Kind.PRODUCT_PAGE: (400, 900),
    Kind.CASE_STUDY: (500, 1000),
    Kind.SUMMARY: (150, 400),
}
_LANGUAGES = {"zh-hant": "繁体中文", "zh-tw": "繁体中文", "zh-hk": "繁体中文", "zh": "简体中文", "en": "English"}


class Instruction(Record):
    """What a writer is told, before it becomes a call."""

    system: str
    user: str
    max_tokens: int


class PictureIdea(Record):
    """What a picture is to show, and the words that stand for it where it cannot be seen."""

    prompt: str
    title: str
    alt: str


def is_chinese(locale: str) -> bool:
    return locale.lower().replace("_", "-").split("-")[0] == "zh"


def language_of(locale: str) -> str:
    lowered = locale.lower().replace("_", "-")
    for code in (lowered, "-".join(lowered.split("-")[:2]), lowered.split("-")[0]):
        if code in _LANGUAGES:
            return _LANGUAGES[code]
    return f"the language of locale {inert(locale)}"


def inert(text: str) -> str:
    """One line of user text in which no tag opens."""
    return _ANY_TAG.sub("‹", " ".join(text.split()))


def _inert_body(text: str) -> str:
    """A longer text in which none of our own tags opens or closes."""
    return _OWN_TAG.sub("‹", text.strip())


@cache
def _template(name: str) -> str:
    return files(__package__).joinpath("prompts", name).read_text(encoding="utf-8").strip()


@cache
def _sections(name: str) -> dict[str, str]:
    parts = re.split(r"^## (\w+)$", _template(name), flags=re.MULTILINE)[1:]
    return {title: text.strip() for title, text in zip(parts[::2], parts[1::2], strict=True)}


def facts_for(brand: Brand, locale: str) -> tuple[Fact, ...]:
    """The facts in the language of `locale`; where there are none, all of them."""
    language = locale.lower().replace("_", "-").split("-")[0]
    own = tuple(fact for fact in brand.facts if fact.locale.lower().replace("_", "-").split("-")[0] == language)
    return own or brand.facts


def fact_line(fact: Fact) -> str:
    """`- [F1] text (source: https://…)`, one line whatever the fact holds."""
    text = _SOURCE_MARK.sub("(source ", inert(fact.text))
    url = re.sub(r"[\s()<>]", lambda match: f"%{ord(match.group()):02X}", fact.source_url.strip())
    label = inert(fact.id).replace("[", "").replace("]", "")
    return f"- [{label}] {text} (source: {url})"


def _block(tag: str, text: str) -> str:
    return f"<{tag}>\n{text}\n</{tag}>" if "\n" in text or tag == "facts" else f"<{tag}>{text}</{tag}>"


def _length(kind: Kind, *, chinese: bool) -> str:
    low, high = _WORDS[kind]
    if chinese:
        return f"篇幅约 {low * 3 // 2} 到 {high * 3 // 2} 字。"
    return f"Length: about {low} to {high} words."


def _instruction(
    task: str, keyword: str, locale: str, kind: Kind, brand: Brand, extra: Sequence[str], methods: Sequence[Method]
) -> Instruction:
    chinese = is_chinese(locale)
    suffix = "zh" if chinese else "en"
    name = inert(brand.entity.name)
    told = _sections(f"methods.{suffix}.md")
    values = {
        "kind": _sections(f"kinds.{suffix}.md")[kind].replace("{brand}", name),
        "brand": name,
        "language": language_of(locale),
        "length": _length(kind, chinese=chinese),
        "methods": "\n".join(f"- {told[method]}" for method in methods),
        "voice": inert(brand.voice) or ("平实、准确" if chinese else "plain and exact"),
        "banned": ", ".join(map(inert, brand.banned_words)) or ("无" if chinese else "none"),
    }
    system = re.sub(
        r"\{(\w+)\}", lambda match: values.get(match.group(1), match.group()), _template(f"{task}.{suffix}.md")
    )
    blocks = [
        _block("keyword", inert(keyword)),
        _block("brand", name),
        _block("locale", inert(locale)),
        _block("kind", kind),
        _block("task", task),
        _block("facts", "\n".join(map(fact_line, facts_for(brand, locale)))),
        *extra,
    ]
    return Instruction(system=system, user="\n".join(blocks), max_tokens=_MAX_TOKENS.get(kind, _DEFAULT_TOKENS))


def generate(keyword: str, locale: str, kind: Kind, brand: Brand) -> Instruction:
    """A first draft from the brand's fact sheet."""
    return _instruction("generate", keyword, locale, kind, brand, (), ())


def rewrite(
    keyword: str,
    locale: str,
    kind: Kind,
    brand: Brand,
    *,
    draft: str,
    notes: str = "",
    methods: Sequence[Method] = tuple(Method),
) -> Instruction:
    """A revision of `draft` by the chosen methods and the reviewer's notes."""
    extra = (
        _block("draft", _inert_body(draft)),
        _block("notes", _inert_body(notes)),
        _block("methods", ", ".join(methods)),
    )
    return _instruction("rewrite", keyword, locale, kind, brand, extra, methods)


def question_for(keyword: str, locale: str, brand: Entity | None = None) -> Prompt:
    """The question that measures a keyword, in the shape that makes engines name products.

    brand: marks the prompt as branded where the keyword itself names it.
    """
    asked = " ".join(keyword.split()).rstrip("?？。.!！ ")
    question = _QUESTION.search(asked) is not None or keyword.rstrip().endswith(("?", "？"))
    if is_chinese(locale):
        opening = f"{asked}？" if question else f"“{asked}”有哪些值得推荐的选择？"
        text = f"{opening}请按推荐顺序列出具体的产品或服务名称，并简要说明理由。"
    else:
        opening = f"{asked}?" if question else f"Which options do you recommend for “{asked}”?"
        text = f"{opening} List specific products or services by name, best first, each with a short reason."
    return Prompt(
        id=prompt_id(keyword, locale),
        text=text,
        locale=locale,
        keyword=keyword,
        branded=brand is not None and Matcher([brand]).names(keyword),
    )


def control_prompt(text: str, brand: Entity) -> Prompt:
    """A question of the brand's field that no article answers; asked as it stands."""
    locale = "zh-CN" if re.search(r"[\u3400-\u9fff]", text) else "en"
    return Prompt(
        id=prompt_id(text, locale),
        text=text,
        locale=locale,
        keyword=None,
        branded=Matcher([brand]).names(text),
    )


def picture_brief(title: str, keyword: str, brand: Brand, locale: str) -> PictureIdea:
    """An illustration without words, logos or people, so that nothing in it can be untrue."""
    shown, subject, name = inert(title), inert(keyword), inert(brand.entity.name)
    if is_chinese(locale):
        return PictureIdea(
            prompt=f"一张简洁的横版插图，主题是“{subject}”，用几何图形和柔和的配色表现概念。画面中没有文字、标志、人物和截图。",
            title=shown,
            alt=f"{shown}：关于“{subject}”的配图（{name}）",
        )
    return PictureIdea(
        prompt=(
            f'A clean landscape illustration about "{subject}": abstract shapes and calm colours that carry the idea. '
            "No text, no logos, no people, no screenshots."
        ),
        title=shown,
        alt=f'{shown}: illustration about "{subject}" ({name})',
    )
