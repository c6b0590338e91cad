#!/bin/sh
# Brings both of Temporal's databases to the schema of this version of admin-tools; safe to repeat.
# The databases are there already (roles.sql), so that Temporal's role needs no right to make any.
set -eu

for database in temporal visibility; do
  SQL_DATABASE=temporal
  [ "$database" = temporal ] || SQL_DATABASE=temporal_visibility
  export SQL_DATABASE
  echo "schema of $SQL_DATABASE"
  temporal-sql-tool setup-schema -v 0.0
  temporal-sql-tool update-schema -d "/etc/temporal/schema/postgresql/v12/$database/versioned"
done
