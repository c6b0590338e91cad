-- What may be seen across tenants, and nothing else: before a tenant is known, or for all of them.

CREATE FUNCTION citeloop_tenant_ensure(new_id varchar, wanted varchar, share double precision) RETURNS SETOF tenants
LANGUAGE sql SECURITY DEFINER SET search_path = public, pg_temp AS $$
  INSERT INTO tenants (id, name, weight) VALUES (new_id, wanted, share) ON CONFLICT (name) DO NOTHING;
  SELECT * FROM tenants WHERE name = wanted;
$$

CREATE FUNCTION citeloop_tenant_by_name(wanted varchar) RETURNS SETOF tenants
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  SELECT * FROM tenants WHERE name = wanted;
$$

CREATE FUNCTION citeloop_reservation(wanted varchar)
RETURNS TABLE (tenant_id varchar, publication_id varchar, article_id varchar, site varchar)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  SELECT p.tenant_id, p.id, p.article_id, p.site FROM publications p WHERE p.token = wanted;
$$

CREATE FUNCTION citeloop_unstarted(older_than interval, most integer)
RETURNS TABLE (tenant_id varchar, article_id varchar)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  SELECT a.tenant_id, a.id FROM articles a JOIN tenants t ON t.id = a.tenant_id
  WHERE a.campaign_id IS NULL AND a.started_at IS NULL AND a.ended_at IS NULL AND a.hold IS NULL
    AND t.hold IS NULL AND a.submitted_at < clock_timestamp() - older_than
  ORDER BY a.submitted_at LIMIT most;
$$

CREATE FUNCTION citeloop_unstarted_campaigns(older_than interval, most integer)
RETURNS TABLE (tenant_id varchar, campaign_id varchar)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  SELECT c.tenant_id, c.id FROM campaigns c JOIN tenants t ON t.id = c.tenant_id
  WHERE c.state = 'submitted' AND c.hold IS NULL AND t.hold IS NULL
    AND c.created_at < clock_timestamp() - older_than
  ORDER BY c.created_at LIMIT most;
$$

CREATE FUNCTION citeloop_samples_ahead(months integer) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
  first timestamptz;
  made integer := 0;
  part text;
BEGIN
  PERFORM pg_advisory_xact_lock(hashtext('citeloop.samples'));
  FOR month IN 0..least(months, 24) LOOP
    first := date_trunc('month', now() AT TIME ZONE 'UTC') AT TIME ZONE 'UTC';
    first := ((first AT TIME ZONE 'UTC') + make_interval(months => month)) AT TIME ZONE 'UTC';
    part := 'samples_' || to_char(first AT TIME ZONE 'UTC', 'YYYY_MM');
    CONTINUE WHEN to_regclass('public.' || part) IS NOT NULL;
    BEGIN
      EXECUTE format('CREATE TABLE %I PARTITION OF samples FOR VALUES FROM (%L) TO (%L)',
        part, first, ((first AT TIME ZONE 'UTC') + interval '1 month') AT TIME ZONE 'UTC');
    EXCEPTION WHEN check_violation THEN
      CONTINUE;
    END;
    PERFORM citeloop_protect(part::regclass);
    EXECUTE format('GRANT SELECT, INSERT, UPDATE ON %I TO citeloop_app', part);
    made := made + 1;
  END LOOP;
  RETURN made;
END $$

DO $$
BEGIN
  REVOKE ALL ON FUNCTION citeloop_protect(regclass) FROM PUBLIC;
  REVOKE ALL ON FUNCTION citeloop_tenant_ensure(varchar, varchar, double precision) FROM PUBLIC;
  REVOKE ALL ON FUNCTION citeloop_tenant_by_name(varchar) FROM PUBLIC;
  REVOKE ALL ON FUNCTION citeloop_reservation(varchar) FROM PUBLIC;
  REVOKE ALL ON FUNCTION citeloop_unstarted(interval, integer) FROM PUBLIC;
  REVOKE ALL ON FUNCTION citeloop_unstarted_campaigns(interval, integer) FROM PUBLIC;
  REVOKE ALL ON FUNCTION citeloop_samples_ahead(integer) FROM PUBLIC;
  GRANT EXECUTE ON FUNCTION citeloop_tenant_ensure(varchar, varchar, double precision) TO citeloop_app;
  GRANT EXECUTE ON FUNCTION citeloop_tenant_by_name(varchar) TO citeloop_app;
  GRANT EXECUTE ON FUNCTION citeloop_reservation(varchar) TO citeloop_app;
  GRANT EXECUTE ON FUNCTION citeloop_unstarted(interval, integer) TO citeloop_app;
  GRANT EXECUTE ON FUNCTION citeloop_unstarted_campaigns(interval, integer) TO citeloop_app;
  GRANT EXECUTE ON FUNCTION citeloop_samples_ahead(integer) TO citeloop_app;
END $$

SELECT citeloop_samples_ahead(3)
