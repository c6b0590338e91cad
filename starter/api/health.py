"""For load balancers and start-up orders."""

from fastapi import APIRouter, HTTPException, Request, status
from temporalio.service import RPCError

from citeloop.models.record import Record
from citeloop.store.errors import StoreUnavailable
from citeloop.store.repositories import channels
from starter.api.answers import problems
from starter.api.wiring import wired

router = APIRouter(tags=["health"])


class Health(Record):
    status: str


def _example(word: str) -> dict[int | str, dict[str, object]]:
    return {200: {"content": {"application/json": {"example": {"status": word}}}}}


@router.get("/healthz", summary="Whether this process answers", responses=_example("ok"))
async def healthz() -> Health:
    return Health(status="ok")


@router.get(
    "/readyz", summary="Whether store and Temporal answer too", responses={**_example("ready"), **problems(503)}
)
async def readyz(request: Request) -> Health:
    """Submitting needs only the store; steering and publishing need both."""
    parts = wired(request)
    try:
        async with parts.database.operator() as operator:
            await channels.rows(operator)
        answers = await parts.client.service_client.check_health()
    except (StoreUnavailable, OSError, RPCError, RuntimeError, TimeoutError):
        answers = False
    if not answers:
        raise HTTPException(status.HTTP_503_SERVICE_UNAVAILABLE, "store or Temporal does not answer")
    return Health(status="ready")
