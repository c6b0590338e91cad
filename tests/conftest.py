"""Fixtures of the whole suite, one file per server."""

pytest_plugins = ["tests.fixtures_postgres", "tests.fixtures_sandbox", "tests.fixtures_temporal"]
