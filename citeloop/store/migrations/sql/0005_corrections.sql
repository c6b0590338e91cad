-- Blank lines separate the statements.
ALTER TABLE publications
  ADD COLUMN slug varchar NOT NULL DEFAULT '',
  ADD COLUMN reading json

-- Which stages are over, as the stages' own activities tell it: `progress` is written by the workflow's notes only.
ALTER TABLE articles ADD COLUMN done json

CREATE TABLE corrections (
  tenant_id varchar NOT NULL REFERENCES tenants (id),
  id varchar NOT NULL,
  publication_id varchar NOT NULL,
  article_id varchar NOT NULL,
  site varchar NOT NULL,
  kind varchar NOT NULL,
  draft_id varchar,
  draft_digest varchar NOT NULL DEFAULT '',
  by varchar NOT NULL,
  reason varchar NOT NULL DEFAULT '',
  state varchar NOT NULL DEFAULT 'asked',
  problem varchar NOT NULL DEFAULT '',
  asked_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  ended_at timestamptz,
  PRIMARY KEY (tenant_id, id),
  FOREIGN KEY (tenant_id, publication_id) REFERENCES publications (tenant_id, id)
)

CREATE INDEX corrections_of_article ON corrections (tenant_id, article_id, asked_at)

CREATE INDEX corrections_open ON corrections (asked_at) WHERE ended_at IS NULL

DO $$
BEGIN
  PERFORM citeloop_protect('corrections'::regclass);
END $$

CREATE POLICY owner_reads ON corrections FOR SELECT TO citeloop_owner USING (true)

GRANT SELECT, INSERT, UPDATE ON corrections TO citeloop_app

-- Asked for a while ago and still open: the sweeper makes sure that a workflow is at it.
CREATE FUNCTION citeloop_open_corrections(older_than interval, most integer)
RETURNS TABLE (tenant_id varchar, article_id varchar, site varchar)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  SELECT c.tenant_id, c.article_id, c.site FROM corrections c
  WHERE c.ended_at IS NULL AND c.asked_at < clock_timestamp() - older_than
  GROUP BY c.tenant_id, c.article_id, c.site ORDER BY min(c.asked_at) LIMIT most;
$$

DO $$
BEGIN
  REVOKE ALL ON FUNCTION citeloop_open_corrections(interval, integer) FROM PUBLIC;
  GRANT EXECUTE ON FUNCTION citeloop_open_corrections(interval, integer) TO citeloop_app;
END $$
