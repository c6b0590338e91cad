"""The simulated writers: they compose only from the facts that stand in the prompt they receive."""

import re
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from sandbox.config import ServiceSettings
from sandbox.luck import Draw, Luck
from sandbox.phrases import Phrases, phrases_for
from sandbox.providers import Answered, Ask, Model
from sandbox.speech import Reply, tokens
from sandbox.terms import term_set

_FACT = re.compile(r"^\s*- \[(?P<id>[^\]]+)\] (?P<text>.+?)\s*\(source: (?P<url>[^\s)]+)\)\s*$", re.MULTILINE)
_LINK = re.compile(r"\]\((https?://[^)\s]+)\)")
_LONG_ENOUGH = 1000


@dataclass(frozen=True)
class Fact:
    text: str
    url: str

    def sentence(self, phrases: Phrases) -> str:
        """The statement with its source, as one sentence."""
        text = self.text.rstrip(" .。")
        gap = "" if phrases.stop == "。" else " "
        mark = f"（[{phrases.link}]({self.url})）" if not gap else f"([{phrases.link}]({self.url}))"
        return f"{text}{gap}{mark}{phrases.stop}".strip()


@dataclass(frozen=True)
class Section:
    heading: str
    body: str

    def __str__(self) -> str:
        return f"## {self.heading}\n\n{self.body}".rstrip()


@dataclass(frozen=True)
class Assignment:
    """A writing prompt, read. Without facts it is no assignment."""

    facts: tuple[Fact, ...]
    keyword: str
    brand: str
    locale: str
    kind: str
    draft: str
    notes: tuple[str, ...]
    rewrite: bool

    @property
    def phrases(self) -> Phrases:
        return phrases_for(self.locale)

    def fill(self, template: str) -> str:
        return template.replace("{k}", self.keyword).replace("{b}", self.brand)


def read(prompt: str) -> Assignment | None:
    """None where the prompt has no `<facts>` with at least one fact."""
    facts = tuple(Fact(text=m["text"], url=m["url"]) for m in _FACT.finditer(_tag(prompt, "facts")))
    if not facts:
        return None
    notes = (line.strip().lstrip("-*").strip() for line in _tag(prompt, "notes").splitlines())
    return Assignment(
        facts=facts,
        keyword=_tag(prompt, "keyword"),
        brand=_tag(prompt, "brand"),
        locale=_tag(prompt, "locale") or "en",
        kind=_tag(prompt, "kind") or "article",
        draft=_tag(prompt, "draft"),
        notes=tuple(note for note in notes if note),
        rewrite=_tag(prompt, "task") == "rewrite",
    )


def _tag(prompt: str, name: str) -> str:
    """The last block of that name: instructions before it may mention the tag in passing."""
    _, opening, rest = prompt.rpartition(f"<{name}>")
    return rest.partition(f"</{name}>")[0].strip() if opening else ""


def generate(job: Assignment, draw: Draw) -> str:
    """A first draft: lead, question sections, FAQ, sources."""
    phrases = job.phrases
    facts = _chosen(job, draw, count=8)
    facts, spare = facts[:6], facts[6:]
    titles = phrases.faq_titles if job.kind == "faq" else phrases.titles
    lead = f"{job.fill(draw.pick('lead', phrases.leads))} {facts[0].sentence(phrases)}"
    questions = draw.shuffled("questions", phrases.questions)
    bridges = draw.shuffled("bridges", phrases.bridges)
    sections = []
    for place, pair in enumerate(_pairs(facts[1:] or facts)):
        stated = " ".join(fact.sentence(phrases) for fact in pair)
        bridge = job.fill(bridges[place % len(bridges)])
        sections.append(Section(job.fill(questions[place % len(questions)]), f"{stated} {bridge}"))
    sections.append(_faq(job, spare or facts, draw))
    title = job.fill(draw.pick("title", titles))
    text = [f"# {title[:1].upper()}{title[1:]}", phrases.simulated, lead, *map(str, sections)]
    return _finished(job, text, [*facts, *spare], draw)


def rewrite(job: Assignment, draw: Draw) -> str:
    """The draft, restructured: answer first, question headings, figures from the facts, sources merged."""
    phrases = job.phrases
    title, lead, sections = _taken_apart(job)
    facts = _chosen(job, draw, count=len(job.facts))
    answer = next((fact for fact in facts if fact.sentence(phrases) not in lead), facts[0])
    short = f"**{job.fill(draw.pick('short', phrases.short))}** {answer.sentence(phrases)}"
    text = [f"# {title}", phrases.simulated, short]
    text += [phrases.note.replace("{n}", _as_sentence(note, phrases)) for note in job.notes]
    text += [lead] if lead else []
    own = {phrases.faq_heading, phrases.sources_heading, job.fill(phrases.figures), job.fill(phrases.documented)}
    told = [section for section in sections if section.heading not in own]
    text += [str(replace(s, heading=_as_question(s.heading, phrases))) for s in draw.shuffled("order", told)]
    figures = [fact for fact in facts if re.search(r"\d", fact.text)]
    heading = phrases.figures if figures else phrases.documented
    lines = "\n".join(f"- {fact.sentence(phrases)}" for fact in (figures or facts)[:3])
    text.append(str(Section(job.fill(heading), lines)))
    kept = next((s for s in sections if s.heading == phrases.faq_heading), None)
    text.append(str(kept or _faq(job, facts, draw)))
    cited = set(_LINK.findall("\n".join(text)))
    return _finished(job, text, [fact for fact in job.facts if fact.url in cited], draw)


def _chosen(job: Assignment, draw: Draw, *, count: int) -> list[Fact]:
    """Facts that share words with the keyword first, the others as luck has it."""
    wanted = term_set(job.keyword)
    mixed = draw.shuffled("facts", job.facts)
    return sorted(mixed, key=lambda fact: -len(wanted & term_set(fact.text)))[:count]


def _pairs(facts: list[Fact]) -> list[list[Fact]]:
    return [facts[start : start + 2] for start in range(0, len(facts), 2)]


def _faq(job: Assignment, facts: list[Fact], draw: Draw) -> Section:
    phrases = job.phrases
    asked = draw.shuffled("faq", phrases.faq)[:3]
    answers = draw.shuffled("answers", facts)
    entries = [
        f"### {job.fill(question)}\n\n{answers[place % len(answers)].sentence(phrases)}"
        for place, question in enumerate(asked)
    ]
    return Section(phrases.faq_heading, "\n\n".join(entries))


def _finished(job: Assignment, text: list[str], facts: list[Fact], draw: Draw) -> str:
    """Adds neutral closing words to a short text, and the list of sources."""
    phrases = job.phrases
    for closing in draw.shuffled("closings", phrases.closings):
        if sum(map(len, text)) >= _LONG_ENOUGH:
            break
        text.append(job.fill(closing))
    urls = dict.fromkeys(fact.url for fact in facts)
    lines = "\n".join(f"- [{_page_name(url)}]({url})" for url in urls)
    return "\n\n".join([*text, str(Section(phrases.sources_heading, lines))]) + "\n"


def _taken_apart(job: Assignment) -> tuple[str, str, list[Section]]:
    """Title, lead and sections of the draft. A draft without headings becomes one section a paragraph."""
    before, *parts = re.split(r"^## +", job.draft, flags=re.MULTILINE)
    found = re.search(r"^# +(.+)$", before, re.MULTILINE)
    title = found[1].strip() if found else job.fill(job.phrases.titles[0])
    paragraphs = [p.strip() for p in re.sub(r"^# +.+$", "", before, flags=re.MULTILINE).split("\n\n")]
    told = [p for p in paragraphs if p and p != job.phrases.simulated and not p.startswith("**")]
    sections = [Section(*_headed(part)) for part in parts]
    if not parts:
        questions = job.phrases.questions
        sections = [
            Section(job.fill(questions[place % len(questions)]), paragraph) for place, paragraph in enumerate(told[1:])
        ]
    return title, "\n\n".join(told if parts else told[:1]), sections


def _headed(part: str) -> tuple[str, str]:
    heading, _, body = part.partition("\n")
    return heading.strip(), body.strip()


def _as_question(heading: str, phrases: Phrases) -> str:
    return heading if heading.endswith(("?", "？")) else phrases.as_question.replace("{h}", heading)


def _as_sentence(note: str, phrases: Phrases) -> str:
    return note if note.endswith((".", "。", "!", "！", "?", "？")) else note + phrases.stop.strip()


def _page_name(url: str) -> str:
    parts = urlsplit(url)
    return (parts.netloc + parts.path).rstrip("/")


def writer(name: str, luck: Luck) -> Model:
    """The model behind one chat provider. Each provider phrases the same assignment in its own way."""

    async def write(ask: Ask, _draw: Draw, _settings: ServiceSettings) -> Answered:
        prompt_tokens = tokens(ask.text)
        job = read(ask.question)
        if job is None:
            text = f"Simulated by the CiteLoop sandbox ({name}). There were no facts in the prompt to write from."
            return Answered(Reply(text, prompt_tokens))
        compose = rewrite if job.rewrite else generate
        draw = luck.constant("writer", name, job.keyword, job.locale, job.kind, *job.notes)
        return Answered(Reply(compose(job, draw), prompt_tokens))

    return write
