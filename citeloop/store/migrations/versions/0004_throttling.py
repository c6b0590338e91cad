"""What limits a channel besides its rate: adaptation, breaker, tokens, quota."""

from citeloop.store.migrations.statements import run

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    run("0004_throttling.sql")
