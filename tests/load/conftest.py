"""The PostgreSQL of the store's tests."""

from stores.conftest import postgres_url, server

__all__ = ("postgres_url", "server")
