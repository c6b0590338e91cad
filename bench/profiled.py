"""A worker under cProfile: python -m bench.profiled FILE."""

import asyncio
import cProfile
import sys

import worker


def main(file: str) -> None:
    profile = cProfile.Profile()
    try:
        profile.runcall(asyncio.run, worker.main(()))
    finally:
        profile.dump_stats(file)


if __name__ == "__main__":
    main(sys.argv[1])
