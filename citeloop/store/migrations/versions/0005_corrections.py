"""Posts that are scheduled, corrected or withdrawn, and what a page check found."""

from citeloop.store.migrations.statements import run

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    run("0005_corrections.sql")
