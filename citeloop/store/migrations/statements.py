"""Runs a migration's SQL file: one statement a paragraph, since Postgres prepares one at a time."""

from pathlib import Path

from alembic import op

_FOLDER = Path(__file__).parent / "sql"


def run(name: str) -> None:
    for paragraph in (_FOLDER / name).read_text(encoding="utf-8").split("\n\n"):
        lines = [line for line in paragraph.splitlines() if not line.startswith("--")]
        if any(lines):
            op.get_bind().exec_driver_sql("\n".join(lines))
