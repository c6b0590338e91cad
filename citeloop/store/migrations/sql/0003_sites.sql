-- One statement a paragraph: blank lines separate them.

-- A tenant's own sites. `sealed` is opened in a worker's memory only; `sealed_print` tells whether a secret that is
-- given again is the same one. What is neither a column nor secret stands in `settings`, as it was written.
CREATE TABLE registered_sites (
  tenant_id varchar NOT NULL REFERENCES tenants (id),
  name varchar NOT NULL,
  kind varchar NOT NULL,
  base_url varchar NOT NULL,
  username varchar NOT NULL DEFAULT '',
  sealed bytea NOT NULL,
  sealed_print varchar NOT NULL,
  rate varchar,
  concurrency integer NOT NULL,
  labels varchar[] NOT NULL DEFAULT '{}',
  settings json NOT NULL,
  state varchar NOT NULL DEFAULT 'active',
  revision integer NOT NULL DEFAULT 1,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (tenant_id, name)
)

CREATE INDEX registered_sites_kind ON registered_sites (tenant_id, kind, name)

-- The labels once more, so that a page of one label is read in order. An index on the array would not do: under
-- row-level security an operator that is not leakproof, as @> is not, reaches no index.
CREATE TABLE site_labels (
  tenant_id varchar NOT NULL,
  label varchar NOT NULL,
  name varchar NOT NULL,
  PRIMARY KEY (tenant_id, label, name),
  FOREIGN KEY (tenant_id, name) REFERENCES registered_sites (tenant_id, name) ON DELETE CASCADE
)

CREATE INDEX site_labels_name ON site_labels (tenant_id, name)

-- What is being asked of each site right now, by the whole fleet. An operator's site has the tenant ''.
-- leases: holder → when it ends by itself. Times are microseconds since 1970.
CREATE TABLE site_lanes (
  tenant_id varchar NOT NULL,
  site varchar NOT NULL,
  leases jsonb NOT NULL DEFAULT '{}',
  next_us bigint NOT NULL DEFAULT 0,
  queue_us bigint NOT NULL DEFAULT 0,
  held_us bigint NOT NULL DEFAULT 0,
  taken_us bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (tenant_id, site)
)

DO $$
DECLARE
  target text;
BEGIN
  FOREACH target IN ARRAY ARRAY['registered_sites', 'site_labels'] LOOP
    PERFORM citeloop_protect(target::regclass);
  END LOOP;
END $$

ALTER TABLE site_lanes ENABLE ROW LEVEL SECURITY

ALTER TABLE site_lanes FORCE ROW LEVEL SECURITY

CREATE POLICY tenant ON site_lanes
  USING (current_setting('citeloop.tenant', true) <> '' AND tenant_id IN ('', current_setting('citeloop.tenant', true)))
  WITH CHECK (tenant_id IN ('', current_setting('citeloop.tenant', true)))

GRANT SELECT, INSERT, UPDATE, DELETE ON registered_sites, site_labels, site_lanes TO citeloop_app

-- One visit to a site, or when to come again. Granted: at most `most` at once, `spacing_us` apart, no more than
-- `ahead_us` from now. Turned away: a place in the queue, as far behind the one before as a visit takes, so that a
-- thousand who wait come back one after the other. A site that hangs is known by the age of its youngest visit.
CREATE FUNCTION citeloop_site_turn(owner varchar, wanted varchar, holder varchar, most integer, spacing_us bigint,
  lasting_us bigint, ahead_us bigint, OUT granted boolean, OUT wait_us bigint)
LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
DECLARE
  lane site_lanes;
  now_us bigint;
  live jsonb;
  visits integer;
  start_us bigint;
  step_us bigint;
  far_us bigint;
BEGIN
  INSERT INTO site_lanes (tenant_id, site) VALUES (owner, wanted) ON CONFLICT DO NOTHING;
  SELECT * INTO lane FROM site_lanes l WHERE l.tenant_id = owner AND l.site = wanted FOR UPDATE;
  now_us := extract(epoch FROM clock_timestamp()) * 1000000;
  SELECT coalesce(jsonb_object_agg(key, value), '{}'), count(*) INTO live, visits
    FROM jsonb_each(lane.leases) WHERE value::bigint > now_us AND key <> holder;
  start_us := greatest(now_us, lane.next_us);
  IF visits < most AND start_us - now_us <= ahead_us THEN
    UPDATE site_lanes l SET leases = live || jsonb_build_object(holder, start_us + lasting_us), taken_us = now_us,
      next_us = start_us + spacing_us WHERE l.tenant_id = owner AND l.site = wanted;
    granted := true;
    wait_us := start_us - now_us;
    RETURN;
  END IF;
  IF visits >= most THEN
    step_us := greatest(lane.held_us, now_us - lane.taken_us) * 3 / 4 / greatest(most, 1);
    step_us := least(greatest(step_us, 20000), 15000000);
  END IF;
  step_us := greatest(coalesce(step_us, 20000), spacing_us);
  far_us := greatest(300000000, 4 * spacing_us);
  start_us := greatest(start_us, lane.queue_us) + step_us;
  UPDATE site_lanes l SET queue_us = least(start_us, now_us + far_us), leases = live
    WHERE l.tenant_id = owner AND l.site = wanted;
  granted := false;
  wait_us := start_us - now_us + random() * step_us / 4;
  IF wait_us > far_us THEN
    wait_us := far_us * (0.5 + random() / 2);
  END IF;
END $$

DO $$
BEGIN
  REVOKE ALL ON FUNCTION citeloop_site_turn(varchar, varchar, varchar, integer, bigint, bigint, bigint) FROM PUBLIC;
  GRANT EXECUTE ON FUNCTION citeloop_site_turn(varchar, varchar, varchar, integer, bigint, bigint, bigint)
    TO citeloop_app;
END $$
