"""`python -m starter.api`: the API until SIGTERM or Ctrl-C."""

import argparse
import gc

import uvicorn

from starter.api import app


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m starter.api", description=__doc__)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8080)
    given = parser.parse_args()
    served = app.create()
    gc.freeze()  # a sweep over all that was imported would hold every answer up for a fifth of a second
    uvicorn.run(
        served,
        host=given.host,
        port=given.port,
        log_level="warning",
        access_log=False,
        timeout_graceful_shutdown=5,
    )


if __name__ == "__main__":
    main()
