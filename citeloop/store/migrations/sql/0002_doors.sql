-- One statement a paragraph: blank lines separate them.

CREATE TABLE api_keys (
  tenant_id varchar NOT NULL REFERENCES tenants (id),
  id varchar NOT NULL,
  name varchar NOT NULL,
  role varchar NOT NULL,
  prefix varchar NOT NULL,
  hash varchar NOT NULL,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  last_used_at timestamptz,
  revoked_at timestamptz,
  PRIMARY KEY (tenant_id, id),
  UNIQUE (hash)
)

CREATE TABLE brand_handles (
  tenant_id varchar NOT NULL REFERENCES tenants (id),
  handle varchar NOT NULL,
  brand_id varchar NOT NULL,
  updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (tenant_id, handle),
  FOREIGN KEY (tenant_id, brand_id) REFERENCES brands (tenant_id, id)
)

CREATE TABLE idempotency_keys (
  tenant_id varchar NOT NULL REFERENCES tenants (id),
  key varchar NOT NULL,
  fingerprint varchar NOT NULL,
  campaign_id varchar,
  article_id varchar,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (tenant_id, key)
)

-- The transaction that wrote an event. Numbers are given out in one order and become visible in another;
-- a reader that stops below the oldest transaction still running misses nothing.
ALTER TABLE article_events ADD COLUMN written_in bigint NOT NULL DEFAULT (pg_current_xact_id()::text::bigint)

CREATE INDEX events_written ON article_events (tenant_id, written_in)

CREATE INDEX publications_newest ON publications (tenant_id, created_at, id)

DO $$
DECLARE
  target text;
BEGIN
  FOREACH target IN ARRAY ARRAY['api_keys', 'brand_handles', 'idempotency_keys'] LOOP
    PERFORM citeloop_protect(target::regclass);
  END LOOP;
END $$

CREATE POLICY owner ON api_keys TO citeloop_owner USING (true) WITH CHECK (true)

GRANT SELECT ON api_keys, brand_handles, idempotency_keys TO citeloop_app

GRANT INSERT ON idempotency_keys TO citeloop_app

GRANT INSERT, UPDATE ON api_keys, brand_handles TO citeloop_app

-- Before a tenant is known. The last use is kept to the minute, so that a busy key is not written all the time.
CREATE FUNCTION citeloop_api_key(wanted varchar)
RETURNS TABLE (id varchar, name varchar, role varchar, hash varchar, tenant_id varchar, tenant_name varchar,
               weight double precision, hold varchar)
LANGUAGE sql SECURITY DEFINER SET search_path = public, pg_temp AS $$
  UPDATE api_keys SET last_used_at = clock_timestamp()
  WHERE api_keys.hash = wanted AND revoked_at IS NULL
    AND (last_used_at IS NULL OR last_used_at < clock_timestamp() - interval '1 minute');
  SELECT k.id, k.name, k.role, k.hash, t.id, t.name, t.weight, t.hold
  FROM api_keys k JOIN tenants t ON t.id = k.tenant_id WHERE k.hash = wanted AND k.revoked_at IS NULL;
$$

DO $$
BEGIN
  REVOKE ALL ON FUNCTION citeloop_api_key(varchar) FROM PUBLIC;
  GRANT EXECUTE ON FUNCTION citeloop_api_key(varchar) TO citeloop_app;
END $$
