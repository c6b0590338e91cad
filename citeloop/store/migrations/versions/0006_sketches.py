"""By what drafts are compared: a sketch of each, so that review need not read every earlier article."""

from citeloop.store.migrations.statements import run

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    run("0006_sketches.sql")
