"""${message}

Revision: ${up_revision}
Follows: ${down_revision | comma,n}

Rules, for whoever writes one:

* The revision id is the file's name: 0005_widgets.
* Never import models: they go on changing, this file never does. ``app.db.checks`` and
  ``app.db.types`` may be used, since what they say never changes.
* Name every constraint in full with ``op.f``. A CHECK that changes gets a new name, since
  ``alembic check`` compares names only.
* It must work on SQLite, PostgreSQL and MariaDB, up and down, with rows in the tables, and offline
  (``alembic upgrade head --sql``). Alter SQLite tables with ``op.batch_alter_table`` and ``copy_from``.
* MariaDB commits at each DDL statement: each step must do no harm when it is done again
  (``if_not_exists``, ``if_exists``). ``create_table`` makes an ``sa.Index`` of its own without that:
  create each index by itself.
* Old code must run on the new schema: first add, then move, and take away in a later release.
"""

from alembic import op
import sqlalchemy as sa
${imports if imports else ""}
revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}
branch_labels = ${repr(branch_labels)}
depends_on = ${repr(depends_on)}


def upgrade() -> None:
    ${upgrades if upgrades else "pass"}


def downgrade() -> None:
    ${downgrades if downgrades else "pass"}
