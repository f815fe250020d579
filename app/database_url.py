"""Database URLs: which ones are understood, and how one is shown to people."""

from sqlalchemy.engine import make_url

_DRIVERS = {
    "sqlite": "sqlite",
    "postgres": "postgresql+psycopg",
    "postgresql": "postgresql+psycopg",
    "mysql": "mariadb+pymysql",
    "mariadb": "mariadb+pymysql",
}


def normalize_url(url: str) -> str:
    """Return ``url`` with the driver that Bellringer uses; ``mysql://`` means MariaDB.

    Raises ValueError, which never repeats the URL since it may hold a password.
    """
    try:
        parsed = make_url(url)
    except Exception:
        raise ValueError(
            "not a database URL; expected for example sqlite:///bellringer.db, "
            "postgresql://user:password@host/name or mariadb://user:password@host/name"
        ) from None
    backend = parsed.drivername.split("+")[0]
    if backend not in _DRIVERS:
        raise ValueError(
            f"{backend!r} databases are not supported; use sqlite, postgresql, mariadb"
        )
    if backend == "sqlite" and parsed.database in (None, "", ":memory:"):
        raise ValueError("SQLite needs a file, as in sqlite:///bellringer.db")
    return parsed.set(drivername=_DRIVERS[backend]).render_as_string(hide_password=False)


def without_secrets(url: str) -> str:
    """Return ``url`` as it may be shown: neither its password nor one among its options."""
    parsed = make_url(url)
    hidden = {key: "***" for key in parsed.query if "pass" in key.lower()}
    return parsed.update_query_dict(hidden).render_as_string(hide_password=True)
