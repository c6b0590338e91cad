-- One statement a paragraph: blank lines separate them.

CREATE TABLE tenants (
  id varchar PRIMARY KEY,
  name varchar NOT NULL UNIQUE,
  weight double precision NOT NULL,
  hold varchar,
  created_at timestamptz NOT NULL DEFAULT now()
)

CREATE TABLE brands (
  tenant_id varchar NOT NULL REFERENCES tenants (id),
  id varchar NOT NULL,
  name varchar NOT NULL,
  content json NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (tenant_id, id)
)

CREATE TABLE manifests (
  tenant_id varchar NOT NULL REFERENCES tenants (id),
  id varchar NOT NULL,
  version integer NOT NULL,
  brand json NOT NULL,
  rivals json NOT NULL,
  engines varchar[] NOT NULL,
  replicates integer NOT NULL,
  matcher_version varchar NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (tenant_id, id)
)

CREATE TABLE prompts (
  tenant_id varchar NOT NULL,
  manifest_id varchar NOT NULL,
  id varchar NOT NULL,
  position integer NOT NULL,
  text varchar NOT NULL,
  locale varchar NOT NULL,
  keyword varchar,
  branded boolean NOT NULL,
  PRIMARY KEY (tenant_id, manifest_id, id),
  FOREIGN KEY (tenant_id, manifest_id) REFERENCES manifests (tenant_id, id)
)

CREATE INDEX prompts_by_position ON prompts (tenant_id, manifest_id, position)

CREATE TABLE campaigns (
  tenant_id varchar NOT NULL REFERENCES tenants (id),
  id varchar NOT NULL,
  name varchar NOT NULL,
  brand_id varchar NOT NULL,
  manifest_id varchar NOT NULL,
  request json NOT NULL,
  fingerprint varchar NOT NULL,
  state varchar NOT NULL,
  hold varchar,
  baseline_at timestamptz,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (tenant_id, id),
  FOREIGN KEY (tenant_id, brand_id) REFERENCES brands (tenant_id, id),
  FOREIGN KEY (tenant_id, manifest_id) REFERENCES manifests (tenant_id, id)
)

CREATE INDEX campaigns_newest ON campaigns (tenant_id, created_at, id)

CREATE INDEX campaigns_to_start ON campaigns (created_at) WHERE state = 'submitted'

CREATE TABLE campaign_windows (
  tenant_id varchar NOT NULL,
  campaign_id varchar NOT NULL,
  "window" varchar NOT NULL,
  closed_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (tenant_id, campaign_id, "window"),
  FOREIGN KEY (tenant_id, campaign_id) REFERENCES campaigns (tenant_id, id)
)

CREATE TABLE articles (
  tenant_id varchar NOT NULL REFERENCES tenants (id),
  id varchar NOT NULL,
  campaign_id varchar,
  brand_id varchar NOT NULL,
  manifest_id varchar NOT NULL,
  keyword varchar NOT NULL,
  locale varchar NOT NULL,
  kind varchar NOT NULL,
  priority integer NOT NULL,
  position integer NOT NULL,
  plan json NOT NULL,
  state varchar NOT NULL DEFAULT 'submitted',
  stage varchar NOT NULL,
  round integer NOT NULL DEFAULT 0,
  channel varchar NOT NULL DEFAULT '',
  writer varchar NOT NULL DEFAULT '',
  reason varchar NOT NULL DEFAULT '',
  hold varchar,
  attempts integer NOT NULL DEFAULT 0,
  faults integer NOT NULL DEFAULT 0,
  cost_micros bigint NOT NULL DEFAULT 0,
  cost_currency varchar NOT NULL DEFAULT 'CNY',
  measurement json,
  progress json,
  run_id varchar,
  submitted_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  started_at timestamptz,
  updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  ended_at timestamptz,
  PRIMARY KEY (tenant_id, id),
  FOREIGN KEY (tenant_id, campaign_id) REFERENCES campaigns (tenant_id, id),
  FOREIGN KEY (tenant_id, brand_id) REFERENCES brands (tenant_id, id)
)

CREATE INDEX articles_of_campaign ON articles (tenant_id, campaign_id, position, id)

CREATE INDEX articles_by_state ON articles (tenant_id, campaign_id, state)

CREATE INDEX articles_newest ON articles (tenant_id, submitted_at, id)

CREATE INDEX articles_by_keyword ON articles (tenant_id, keyword)

CREATE INDEX articles_open ON articles (tenant_id, campaign_id, id) WHERE started_at IS NOT NULL AND ended_at IS NULL

CREATE INDEX articles_to_admit ON articles (tenant_id, campaign_id, priority, position)
  WHERE started_at IS NULL AND ended_at IS NULL

CREATE INDEX articles_to_sweep ON articles (submitted_at)
  WHERE campaign_id IS NULL AND started_at IS NULL AND ended_at IS NULL

CREATE TABLE article_events (
  tenant_id varchar NOT NULL,
  article_id varchar NOT NULL,
  seq bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  at timestamptz NOT NULL DEFAULT clock_timestamp(),
  kind varchar NOT NULL,
  stage varchar NOT NULL,
  state varchar NOT NULL,
  detail varchar NOT NULL,
  PRIMARY KEY (tenant_id, article_id, seq),
  FOREIGN KEY (tenant_id, article_id) REFERENCES articles (tenant_id, id)
)

CREATE TABLE drafts (
  tenant_id varchar NOT NULL,
  id varchar NOT NULL,
  article_id varchar NOT NULL,
  digest varchar NOT NULL,
  stage varchar NOT NULL,
  round integer NOT NULL,
  channel varchar NOT NULL,
  title varchar NOT NULL,
  chars integer NOT NULL,
  body varchar NOT NULL,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (tenant_id, id),
  FOREIGN KEY (tenant_id, article_id) REFERENCES articles (tenant_id, id)
)

CREATE INDEX drafts_of_article ON drafts (tenant_id, article_id, created_at)

CREATE TABLE pictures (
  tenant_id varchar NOT NULL,
  article_id varchar NOT NULL,
  digest varchar NOT NULL,
  data bytea NOT NULL,
  media_type varchar NOT NULL,
  width integer NOT NULL,
  height integer NOT NULL,
  alt varchar NOT NULL,
  credit varchar NOT NULL,
  source varchar NOT NULL,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (tenant_id, article_id, digest),
  FOREIGN KEY (tenant_id, article_id) REFERENCES articles (tenant_id, id)
)

CREATE INDEX pictures_by_digest ON pictures (tenant_id, digest)

CREATE TABLE verdicts (
  tenant_id varchar NOT NULL,
  draft_id varchar NOT NULL,
  article_id varchar NOT NULL,
  draft_digest varchar NOT NULL,
  outcome varchar NOT NULL,
  flags json NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (tenant_id, draft_id),
  FOREIGN KEY (tenant_id, article_id) REFERENCES articles (tenant_id, id)
)

CREATE TABLE decisions (
  tenant_id varchar NOT NULL,
  article_id varchar NOT NULL,
  draft_id varchar NOT NULL,
  draft_digest varchar NOT NULL,
  action varchar NOT NULL,
  by varchar NOT NULL,
  notes varchar NOT NULL,
  decided_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (tenant_id, article_id, draft_id),
  FOREIGN KEY (tenant_id, article_id) REFERENCES articles (tenant_id, id)
)

CREATE TABLE purchases (
  tenant_id varchar NOT NULL REFERENCES tenants (id),
  id varchar NOT NULL,
  channel varchar NOT NULL,
  stage varchar NOT NULL,
  article_id varchar,
  model varchar NOT NULL,
  request_id varchar NOT NULL,
  reply json NOT NULL,
  cost_micros bigint NOT NULL,
  cost_currency varchar NOT NULL,
  input_tokens integer NOT NULL,
  output_tokens integer NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (tenant_id, id)
)

CREATE INDEX purchases_of_article ON purchases (tenant_id, article_id)

CREATE TABLE usage_daily (
  tenant_id varchar NOT NULL REFERENCES tenants (id),
  day date NOT NULL,
  channel varchar NOT NULL,
  currency varchar NOT NULL,
  calls bigint NOT NULL,
  cost_micros bigint NOT NULL,
  input_tokens bigint NOT NULL,
  output_tokens bigint NOT NULL,
  PRIMARY KEY (tenant_id, day, channel, currency)
)

CREATE TABLE faults (
  tenant_id varchar NOT NULL REFERENCES tenants (id),
  purchase_id varchar NOT NULL,
  seq bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  article_id varchar,
  channel varchar NOT NULL,
  fault varchar NOT NULL,
  message varchar NOT NULL,
  counts boolean NOT NULL,
  at timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (tenant_id, purchase_id, seq)
)

CREATE TABLE publications (
  tenant_id varchar NOT NULL,
  id varchar NOT NULL,
  article_id varchar NOT NULL,
  site varchar NOT NULL,
  kind varchar NOT NULL,
  state varchar NOT NULL,
  marker varchar NOT NULL,
  digest varchar NOT NULL,
  token varchar NOT NULL UNIQUE,
  remote_id varchar NOT NULL DEFAULT '',
  url varchar NOT NULL DEFAULT '',
  reason varchar NOT NULL DEFAULT '',
  look_ups integer NOT NULL DEFAULT 0,
  sent_at timestamptz,
  deadline timestamptz,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (tenant_id, id),
  UNIQUE (tenant_id, article_id, site),
  FOREIGN KEY (tenant_id, article_id) REFERENCES articles (tenant_id, id)
)

CREATE TABLE callbacks (
  tenant_id varchar NOT NULL,
  publication_id varchar NOT NULL,
  event_id varchar NOT NULL,
  type varchar NOT NULL,
  remote_id varchar NOT NULL,
  url varchar NOT NULL,
  received_at timestamptz NOT NULL,
  delivered_at timestamptz,
  PRIMARY KEY (tenant_id, publication_id, event_id),
  FOREIGN KEY (tenant_id, publication_id) REFERENCES publications (tenant_id, id)
)

CREATE TABLE samples (
  tenant_id varchar NOT NULL REFERENCES tenants (id),
  manifest_id varchar NOT NULL,
  window_start timestamptz NOT NULL,
  prompt_id varchar NOT NULL,
  engine varchar NOT NULL,
  surface varchar NOT NULL,
  market varchar NOT NULL,
  replicate integer NOT NULL,
  "window" varchar NOT NULL,
  campaign_id varchar,
  article_id varchar,
  keyword varchar,
  branded boolean NOT NULL,
  status varchar NOT NULL,
  reading json NOT NULL,
  answer json,
  asked_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (tenant_id, manifest_id, window_start, prompt_id, engine, surface, market, replicate)
) PARTITION BY RANGE (window_start)

CREATE TABLE samples_default PARTITION OF samples DEFAULT

CREATE INDEX samples_of_prompt ON samples (tenant_id, manifest_id, prompt_id)

CREATE INDEX samples_of_article ON samples (tenant_id, article_id)

CREATE INDEX samples_of_campaign ON samples (tenant_id, campaign_id)

CREATE TABLE channels (
  name varchar PRIMARY KEY,
  roles varchar[] NOT NULL,
  queue varchar NOT NULL,
  rate varchar,
  operator_rate varchar,
  interval_us numeric(40, 9),
  stopped boolean NOT NULL DEFAULT false,
  burst integer NOT NULL,
  concurrency integer NOT NULL,
  next_us numeric(40, 9) NOT NULL DEFAULT 0,
  paused boolean NOT NULL DEFAULT false,
  pause_reason varchar NOT NULL DEFAULT '',
  hold_until timestamptz,
  hold_reason varchar NOT NULL DEFAULT '',
  vanished boolean NOT NULL DEFAULT false
)

CREATE TABLE channel_counts (
  name varchar PRIMARY KEY REFERENCES channels (name),
  calls bigint NOT NULL,
  limited bigint NOT NULL,
  faults bigint NOT NULL,
  last_call_at timestamptz
)

CREATE TABLE sites (
  name varchar PRIMARY KEY,
  kind varchar NOT NULL,
  queue varchar NOT NULL,
  base_url varchar NOT NULL,
  rate varchar,
  concurrency integer NOT NULL,
  vanished boolean NOT NULL DEFAULT false
)
