"""Postgres: tables, migrations, and one repository per topic. Nothing else knows SQL."""
