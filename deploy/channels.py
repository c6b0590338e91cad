"""`channels.py FILE [KEYS]`: is channels.toml sound, and are its keys there? Asks nobody outside.

KEYS: a file of NAME=value lines, read in addition to the environment. Exit 1 when the file is wrong; a missing
key is only told, since a channel that no campaign names needs none.
"""  # noqa: INP001 - a script of the image, not a package

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from citeloop.channels.catalog import CatalogError, load, missing_keys


def keys(file: Path) -> dict[str, str]:
    lines = (line.strip() for line in file.read_text().splitlines())
    pairs = (line.partition("=") for line in lines if line and not line.startswith("#"))
    return {name.strip(): value.strip() for name, _, value in pairs}


def main(arguments: Sequence[str]) -> int:
    path = Path(arguments[0])
    environ = {**os.environ, **(keys(Path(arguments[1])) if len(arguments) > 1 else {})}
    try:
        catalog = load(path, environ)
    except CatalogError as error:
        print(f"problem: {error}")  # noqa: T201
        return 1
    names = [channel.name for channel in catalog.channels] + [site.name for site in catalog.sites]
    for lacking in missing_keys(catalog, environ, names):
        print(f"note: {lacking.name} cannot be used: {lacking.variable} has no value in keys.env")  # noqa: T201
    print(f"ok: {path.name} names {len(catalog.channels)} channels and {len(catalog.sites)} sites")  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
