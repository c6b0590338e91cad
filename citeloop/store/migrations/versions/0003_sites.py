"""The registry of tenants' sites, their sealed credentials, and the leases under which they are posted to."""

from citeloop.store.migrations.statements import run

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    run("0003_sites.sql")
