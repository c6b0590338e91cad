-- Roles and databases; safe to repeat, also to change a password. Run as the server's administrator:
--   psql --file roles.sql        with the three passwords in the environment
-- The product's part is what citeloop/store/roles.py does on the embedded server.
\set ON_ERROR_STOP on
\getenv owner_password CITELOOP_OWNER_PASSWORD
\getenv app_password CITELOOP_APP_PASSWORD
\getenv temporal_password TEMPORAL_DB_PASSWORD
-- Nothing with a password in it reaches the server's log.
SET log_statement = 'none';
SET log_min_error_statement = 'panic';
SET log_min_duration_statement = -1;

SELECT format('CREATE ROLE %I', name)
FROM unnest(ARRAY['citeloop_owner', 'citeloop_app', 'temporal']) AS name
WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = name) \gexec

ALTER ROLE citeloop_owner LOGIN NOCREATEDB NOCREATEROLE NOSUPERUSER NOBYPASSRLS NOREPLICATION PASSWORD :'owner_password';
ALTER ROLE citeloop_app LOGIN NOCREATEDB NOCREATEROLE NOSUPERUSER NOBYPASSRLS NOREPLICATION PASSWORD :'app_password';
ALTER ROLE temporal LOGIN NOCREATEDB NOCREATEROLE NOSUPERUSER NOBYPASSRLS NOREPLICATION PASSWORD :'temporal_password';

SELECT format('CREATE DATABASE %I OWNER %I ENCODING ''UTF8'' TEMPLATE template0', name, owner)
FROM (VALUES
  ('citeloop', 'citeloop_owner'),
  ('temporal', 'temporal'),
  ('temporal_visibility', 'temporal')
) AS wanted (name, owner)
WHERE NOT EXISTS (SELECT FROM pg_database WHERE datname = name) \gexec

REVOKE ALL ON DATABASE citeloop, temporal, temporal_visibility FROM PUBLIC;
GRANT CONNECT ON DATABASE citeloop TO citeloop_owner, citeloop_app;
