"""Why a request was refused: one line that names the field and the remedy."""

import difflib
from collections.abc import Iterable

from pydantic import ValidationError

from citeloop.models.plan import Kind

_VIDEO = frozenset({"video", "videos", "视频", "短视频", "影片"})


class RequestError(ValueError):
    """A request that cannot become plans. `str()` is one line: where, what is wrong, what to do."""

    def __init__(self, field: str, problem: str, remedy: str) -> None:
        self.field = field
        self.problem = " ".join(problem.split())
        self.remedy = " ".join(remedy.split())
        super().__init__(f"{field}: {self.problem}; {self.remedy}")


def close_to(name: str, known: Iterable[str], what: str) -> str:
    """The remedy for an unknown name."""
    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
    if near:
        return f"did you mean {' or '.join(near)}?"
    return f"known {what}: {', '.join(names[:10])}" if names else f"no {what} are configured in channels.toml"


def kind_problem(value: object) -> tuple[str, str]:
    """Problem and remedy for a kind that does not exist."""
    shown = str(value)[:40]
    kinds = ", ".join(Kind)
    if shown.strip().lower() in _VIDEO:
        return "video is not supported: CiteLoop writes texts with one picture", f"choose one of {kinds}"
    return f"{shown!r} is no kind of text", f"choose one of {kinds}"


def explained(error: ValidationError, where: str = "") -> RequestError:
    """The first fault of a record that could not be read, as one line. where: a file, or what was sent."""
    fault = error.errors(include_url=False)[0]
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in fault["loc"]).lstrip(".")
    field = " ".join(filter(None, (where, path))) or "request"
    if fault["loc"] and fault["loc"][-1] == "kind":
        return RequestError(field, *kind_problem(fault["input"]))
    if fault["type"] == "missing":
        return RequestError(field, "is missing", "add it")
    if fault["type"] == "extra_forbidden":
        return RequestError(field, "is no known field", "remove it or correct its spelling")
    if fault["loc"] and fault["loc"][-1] == "facts" and fault["type"] == "too_short":
        return RequestError(field, "the brand has no facts", "add at least one fact with its public source_url")
    message = fault["msg"].removeprefix("Value error, ")
    problem, _, remedy = message.partition(": ")
    shown = "" if isinstance(fault["input"], dict | list | tuple) else f" (got {str(fault['input'])[:40]!r})"
    return RequestError(field, problem + shown, remedy or "correct it")
