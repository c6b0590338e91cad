"""${message}"""

from citeloop.store.migrations.statements import run

revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}
branch_labels = None
depends_on = None


def upgrade() -> None:
    run("${up_revision}.sql")
