"""A home keeps simulated work or real work, never both: no text of the sandbox may reach a real site."""

from pathlib import Path

from starter.errors import Conflict


def keep_apart(home: Path, *, simulated: bool) -> None:
    """What the home keeps is settled by its first start. Conflict when it is now started for the other kind."""
    file, kind = home / "kind", "simulated" if simulated else "real"
    kept = file.read_text().strip() if file.exists() else ""
    if not kept:
        file.write_text(f"{kind}\n")
    elif kept != kind:
        remedy = "set CITELOOP_HOME (or --home) to another folder, such as .citeloop/try"
        raise Conflict(f"{home} keeps {kept} work and may not go on with {kind} services", "home", remedy)
