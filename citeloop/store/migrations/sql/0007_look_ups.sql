-- One statement a paragraph: blank lines separate them.

-- Whose rewrites are compared with each other: `campaign/brand revision`, `/brand revision` outside campaigns. Both
-- stay what they were when the article was submitted, so that its drafts may keep them.
ALTER TABLE drafts ADD COLUMN neighbourhood varchar NOT NULL DEFAULT ''

-- The owner fills it in for every tenant; no one else reaches the table until this transaction has ended.
ALTER TABLE drafts NO FORCE ROW LEVEL SECURITY

UPDATE drafts d SET neighbourhood = coalesce(a.campaign_id, '') || '/' || a.brand_id
FROM articles a WHERE a.tenant_id = d.tenant_id AND a.id = d.article_id AND d.stage = 'rewrite'

ALTER TABLE drafts FORCE ROW LEVEL SECURITY

CREATE INDEX rewrites_newest ON drafts (tenant_id, neighbourhood, created_at) WHERE stage = 'rewrite'

-- A trigger, since workers of the version before go on writing until they are replaced.
CREATE FUNCTION citeloop_neighbourhood() RETURNS trigger LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
BEGIN
  NEW.neighbourhood := coalesce((SELECT coalesce(a.campaign_id, '') || '/' || a.brand_id FROM articles a
    WHERE a.tenant_id = NEW.tenant_id AND a.id = NEW.article_id), '');
  RETURN NEW;
END $$

REVOKE ALL ON FUNCTION citeloop_neighbourhood() FROM PUBLIC

CREATE TRIGGER neighbourhood BEFORE INSERT ON drafts FOR EACH ROW WHEN (NEW.stage = 'rewrite')
EXECUTE FUNCTION citeloop_neighbourhood()

-- An article's measuring asks for its question by id or keyword, whichever it is given.
CREATE INDEX prompts_by_keyword ON prompts (tenant_id, manifest_id, keyword)
