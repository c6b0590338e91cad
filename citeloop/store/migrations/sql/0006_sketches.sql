ALTER TABLE drafts ADD COLUMN sketch bigint[] NOT NULL DEFAULT '{}'
