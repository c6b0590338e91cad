"""Who is to be named, by what names, and what may be said of them."""

from pydantic import Field, field_validator

from citeloop.models.record import Record


class Alias(Record):
    """One spelling of a name.

    stop_contexts: characters that, right after the alias, mean something else (小米: 粥 椒 辣).
    required_contexts: for an ambiguous name, words of which one must stand in the same sentence.
    """

    text: str = Field(min_length=1)
    stop_contexts: tuple[str, ...] = ()
    required_contexts: tuple[str, ...] = ()


class Entity(Record):
    """The brand or a rival, as the matcher sees it. `domains` are registrable domains it owns."""

    name: str = Field(min_length=1)
    aliases: tuple[Alias, ...] = ()
    domains: tuple[str, ...] = ()


class Fact(Record):
    """One statement the brand stands by, and the public page that shows it."""

    id: str = Field(min_length=1)
    text: str = Field(min_length=1)
    source_url: str = Field(json_schema_extra={"pattern": "^https?://"})
    locale: str = "en"

    @field_validator("source_url")
    @classmethod
    def _public_page(cls, value: str) -> str:
        if not value.startswith(("https://", "http://")):
            raise ValueError("must be the http(s) address of a public page that shows the fact")
        return value


class Brand(Record):
    entity: Entity
    homepage: str
    description: str = ""
    voice: str = ""
    banned_words: tuple[str, ...] = ()
    facts: tuple[Fact, ...] = Field(min_length=1)
    rivals: tuple[Entity, ...] = ()
    control_prompts: tuple[str, ...] = ()
    """Questions about the brand's field that no article answers: the yardstick for lift."""
