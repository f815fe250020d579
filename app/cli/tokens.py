"""``bellringer token …``: makes and takes away API tokens, straight in the database."""

import getpass
from datetime import datetime

import click

from app.auth.models import ROLES
from app.auth.tokens import Token, TokenStore
from app.cli.main import settings_of
from app.cli.output import instant, json_option, print_fields, print_json, print_table
from app.clock import format_instant
from app.db import open_database


@click.group()
def token() -> None:
    """Make, list and revoke API tokens. Speaks to the database, not to a server."""


@token.command()
@click.argument("name")
@click.option(
    "--role", type=click.Choice(ROLES), default="viewer", show_default=True, help="What it may do."
)
@click.option("--expires", help="When it ends, as in 2027-01-01T00:00:00Z; never if left out.")
@json_option
@click.pass_context
def create(ctx: click.Context, name: str, role: str, expires: str | None, as_json: bool) -> None:
    """Make a token called NAME and show it, this once."""
    made = _store(ctx).create(name, role, f"cli:{_user()}", instant(expires, "--expires"))
    if as_json:
        print_json({"token": made.token, **_as_json(made.about)})
        return
    print_fields(
        [
            ("id", made.about.id),
            ("role", made.about.role),
            ("expires", made.about.expires_at and format_instant(made.about.expires_at)),
            ("token", made.token),
        ]
    )
    click.echo("Keep it now: it is shown this once, and stored nowhere.", err=True)


@token.command("list")
@json_option
@click.pass_context
def list_(ctx: click.Context, as_json: bool) -> None:
    """List tokens; what they are is stored nowhere."""
    tokens = [_as_json(about) for about in _store(ctx).list()]
    if as_json:
        print_json(tokens)
        return
    print_table(
        ("id", "name", "role", "created", "expires", "last used"),
        (
            (t["id"], t["name"], t["role"], t["created_at"], t["expires_at"], t["last_used_at"])
            for t in tokens
        ),
        empty="There are no tokens. 'bellringer token create' makes one.",
    )


@token.command()
@click.argument("token_id")
@json_option
@click.pass_context
def revoke(ctx: click.Context, token_id: str, as_json: bool) -> None:
    """Take a token away. Servers notice within BELLRINGER_TOKEN_CACHE seconds."""
    _store(ctx).revoke(token_id)
    if as_json:
        print_json({"id": token_id, "revoked": True})
    else:
        click.echo(f"The token {token_id} is revoked.")


def _store(ctx: click.Context) -> TokenStore:
    return TokenStore(open_database(settings_of(ctx)))


def _user() -> str:
    try:
        return getpass.getuser()[:200]
    except (KeyError, OSError):
        return "unknown"


def _as_json(about: Token) -> dict[str, str | None]:
    def shown(when: datetime | None) -> str | None:
        return None if when is None else format_instant(when)

    return {
        "id": about.id,
        "name": about.name,
        "role": about.role,
        "created_at": format_instant(about.created_at),
        "created_by": about.created_by,
        "expires_at": shown(about.expires_at),
        "last_used_at": shown(about.last_used_at),
    }
