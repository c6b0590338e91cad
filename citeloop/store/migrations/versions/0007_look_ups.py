"""What is read for every article, in the order in which it is read: its neighbours' rewrites, its question."""

from citeloop.store.migrations.statements import run

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    run("0007_look_ups.sql")
