"""What monitoring found for one article."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from citeloop.models.measure import Sample
from citeloop.models.work import Measurement, SampleStatus
from citeloop.rules.domains import cites_page

DAY = timedelta(days=1)


def measure_article(
    samples: Sequence[Sample],
    urls: Sequence[str],
    published_at: datetime | None,
    *,
    day: timedelta = DAY,
) -> Measurement:
    """Count the samples of an article's own prompts; control prompts are left out.

    urls: the article's pages. `after_cited` counts answers citing one of them by host and path (page cited),
    not answers citing the brand's domains. day: the plan's length of a day, in which the days are counted.
    """
    own = [s for s in samples if s.keyword is not None]
    baseline = [s for s in own if s.window == "baseline" and s.reading.status == SampleStatus.OK]
    after = [s for s in own if s.window == "after"]
    ok = [s for s in after if s.reading.status == SampleStatus.OK]
    citing = [s for s in ok if any(cites_page(s.reading.cited_urls, url) for url in urls)]
    first = min((s.window_start for s in citing), default=None)
    days = None if first is None or published_at is None else max(0.0, (first - published_at) / day)
    return Measurement(
        baseline_ok=len(baseline),
        baseline_named=sum(s.reading.named for s in baseline),
        after_planned=len(after),
        after_ok=len(ok),
        after_named=sum(s.reading.named for s in ok),
        after_grounded=sum(s.reading.grounded for s in ok),
        after_cited=len(citing),
        first_cited_days=days,
    )
