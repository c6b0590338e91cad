"""What the HTTP API keeps: its keys, brands by handle, idempotency keys; and the order in which events appear."""

from citeloop.store.migrations.statements import run

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    run("0002_doors.sql")
