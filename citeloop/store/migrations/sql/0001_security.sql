-- Row-level security binds the application and, through FORCE, the owner too. The owner's own policies
-- below say which tables its SECURITY DEFINER functions may read or write across tenants.

CREATE FUNCTION citeloop_protect(target regclass) RETURNS void LANGUAGE plpgsql
SET search_path = public, pg_temp AS $$
BEGIN
  EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY', target);
  EXECUTE format('ALTER TABLE %s FORCE ROW LEVEL SECURITY', target);
  EXECUTE format(
    'CREATE POLICY tenant ON %s USING (tenant_id = current_setting(''citeloop.tenant'', true)) '
    'WITH CHECK (tenant_id = current_setting(''citeloop.tenant'', true))', target);
END $$

DO $$
DECLARE
  target text;
BEGIN
  FOREACH target IN ARRAY ARRAY[
    'brands', 'manifests', 'prompts', 'campaigns', 'campaign_windows', 'articles', 'article_events', 'drafts',
    'pictures', 'verdicts', 'decisions', 'purchases', 'usage_daily', 'faults', 'publications', 'callbacks',
    'samples', 'samples_default'
  ] LOOP
    PERFORM citeloop_protect(target::regclass);
  END LOOP;
END $$

ALTER TABLE tenants ENABLE ROW LEVEL SECURITY

ALTER TABLE tenants FORCE ROW LEVEL SECURITY

CREATE POLICY tenant ON tenants USING (id = current_setting('citeloop.tenant', true))
  WITH CHECK (id = current_setting('citeloop.tenant', true))

CREATE POLICY owner ON tenants TO citeloop_owner USING (true) WITH CHECK (true)

CREATE POLICY owner_reads ON articles FOR SELECT TO citeloop_owner USING (true)

CREATE POLICY owner_reads ON campaigns FOR SELECT TO citeloop_owner USING (true)

CREATE POLICY owner_reads ON publications FOR SELECT TO citeloop_owner USING (true)

GRANT USAGE ON SCHEMA public TO citeloop_app

GRANT SELECT ON ALL TABLES IN SCHEMA public TO citeloop_app

GRANT INSERT ON brands, manifests, prompts, article_events, drafts, pictures, verdicts, decisions, purchases,
  faults TO citeloop_app

GRANT INSERT, UPDATE ON campaigns, campaign_windows, articles, usage_daily, publications, callbacks, samples,
  channels, channel_counts, sites TO citeloop_app

GRANT UPDATE ON tenants TO citeloop_app
