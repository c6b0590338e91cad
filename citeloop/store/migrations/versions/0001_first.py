"""Every table, row-level security on each, and the few functions that see across tenants."""

from citeloop.store.migrations.statements import run

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    run("0001_tables.sql")
    run("0001_security.sql")
    run("0001_functions.sql")
