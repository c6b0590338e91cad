"""The figures of a measurement as a set, and each one's definition in a line; docs/metrics.md has them in full."""

from collections.abc import Mapping, Sequence

from citeloop.models.measure import Sample
from citeloop.rules import metrics
from citeloop.rules.metrics import Figure

DEFINITIONS: Mapping[str, str] = {
    "mention rate": "ok answers that name the brand ÷ ok answers (上词率, per answer)",
    "prompt coverage": "prompts named at least once ÷ prompts answered at least once (上词率, per keyword)",
    "first-mention rate": "answers in which the brand has rank 1 ÷ ok answers",
    "top-3 rate": "answers in which the brand has rank 1 to 3 ÷ ok answers",
    "mean rank": "mean rank over the answers that name the brand; read it beside the mention rate",
    "share of voice": "answers naming us ÷ (those + answers naming each rival), non-brand prompts only",
    "citation rate": "answers citing a domain of the brand ÷ ok answers that carry sources (信源引用率)",
    "citation share": "citations of the brand's domains ÷ all citations",
    "supported-mention rate": "naming answers with a source in the same sentence ÷ naming answers",
    "ghost rate": "answers that cite the brand without naming it ÷ answers that cite it",
    "informative rate": "answers naming any tracked name ÷ ok answers",
    "coverage": "ok answers ÷ all that were asked, per engine",
}


def figures(
    samples: Sequence[Sample], *, rivals: Sequence[str], domains: Sequence[str], branded: bool = False
) -> tuple[Figure, ...]:
    """Of one window. `rivals` and `domains` are the manifest's; share of voice is never of branded prompts."""
    made = [
        metrics.mention_rate(samples, branded=branded),
        metrics.prompt_coverage(samples, branded=branded),
        metrics.first_mention_rate(samples, branded=branded),
        metrics.top_rate(samples, branded=branded),
        metrics.mean_rank(samples, branded=branded),
        metrics.citation_rate(samples, branded=branded),
        metrics.citation_share(samples, domains, branded=branded),
        metrics.supported_mention_rate(samples, branded=branded),
        metrics.ghost_rate(samples, branded=branded),
        metrics.informative_rate(samples, branded=branded),
    ]
    if not branded:
        made.insert(5, metrics.share_of_voice(samples, rivals))
    return tuple(made)
