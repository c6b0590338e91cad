"""What came of a word: 200 when a worker has acted on it, 202 when it is recorded and nobody has answered yet."""

from fastapi import Response, status

from starter.api import examples
from starter.api.answers import WRITING, Answers, answers
from starter.telling import Effect


def steered(response: Response, effect: Effect) -> Effect:
    response.status_code = status.HTTP_200_OK if effect.answered else status.HTTP_202_ACCEPTED
    return effect


def steering(*others: int) -> Answers:
    recorded = "Recorded; no worker is answering, or there is no run yet"
    return answers(examples.EFFECT, 404, 409, *WRITING, *others, also={202: (Effect, recorded)})
