"""A worker under cProfile: python -m bench.profiled FILE."""

import cProfile
import sys

import uvloop

import worker


def main(file: str) -> None:
    profile = cProfile.Profile()
    try:
        profile.runcall(uvloop.run, worker.main(()))
    finally:
        profile.dump_stats(file)


if __name__ == "__main__":
    main(sys.argv[1])
