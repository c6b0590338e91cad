-- One statement a paragraph: blank lines separate them.

ALTER TABLE channels
  ADD COLUMN calls_per_dispatch integer NOT NULL DEFAULT 1,
  ADD COLUMN operator_concurrency integer,
  ADD COLUMN pause_cause varchar NOT NULL DEFAULT '',
  ADD COLUMN adaptive_rate varchar,
  ADD COLUMN adapted_at timestamptz,
  ADD COLUMN limited_at timestamptz,
  ADD COLUMN limited_streak integer NOT NULL DEFAULT 0,
  ADD COLUMN breaker_until timestamptz,
  ADD COLUMN breaker_level integer NOT NULL DEFAULT 0,
  ADD COLUMN breaker_reason varchar NOT NULL DEFAULT '',
  ADD COLUMN probe_until timestamptz,
  ADD COLUMN quota_until timestamptz,
  ADD COLUMN quota_reason varchar NOT NULL DEFAULT '',
  ADD COLUMN quota_cause varchar NOT NULL DEFAULT '',
  ADD COLUMN tokens_per_minute bigint,
  ADD COLUMN calls_per_day bigint,
  ADD COLUMN tokens_per_day bigint

UPDATE channels SET pause_cause = 'operator' WHERE paused

-- Faults in a row, by which the breaker opens.
ALTER TABLE channel_counts
  ADD COLUMN strikes integer NOT NULL DEFAULT 0,
  ADD COLUMN struck_at timestamptz

-- Calls by stretches of ten seconds; swept after a quarter of an hour.
CREATE TABLE channel_stretches (
  name varchar NOT NULL REFERENCES channels (name) ON DELETE CASCADE,
  began_at timestamptz NOT NULL,
  calls bigint NOT NULL,
  PRIMARY KEY (name, began_at)
)

-- What was taken of a minute's tokens: an estimate before the call, the truth after it.
CREATE TABLE channel_takings (
  name varchar NOT NULL REFERENCES channels (name) ON DELETE CASCADE,
  id bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  at timestamptz NOT NULL DEFAULT clock_timestamp(),
  tokens bigint NOT NULL,
  PRIMARY KEY (name, id)
)

CREATE INDEX takings_by_time ON channel_takings (name, at)

-- What was taken since the quota's last reset.
CREATE TABLE channel_days (
  name varchar PRIMARY KEY REFERENCES channels (name) ON DELETE CASCADE,
  since timestamptz NOT NULL,
  calls bigint NOT NULL,
  tokens bigint NOT NULL
)

GRANT SELECT, INSERT, UPDATE, DELETE ON channel_stretches, channel_takings TO citeloop_app

GRANT SELECT, INSERT, UPDATE ON channel_days TO citeloop_app

ALTER TABLE purchases
  ADD COLUMN cached_tokens integer NOT NULL DEFAULT 0,
  ADD COLUMN searches integer NOT NULL DEFAULT 0

ALTER TABLE usage_daily
  ADD COLUMN cached_tokens bigint NOT NULL DEFAULT 0,
  ADD COLUMN searches bigint NOT NULL DEFAULT 0

CREATE POLICY owner_reads ON usage_daily FOR SELECT TO citeloop_owner USING (true)

-- What the fleet spent on a day, by channel; no tenant is named.
CREATE FUNCTION citeloop_channel_spend(wanted date)
RETURNS TABLE (channel varchar, currency varchar, cost_micros bigint, tokens bigint)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  SELECT u.channel, u.currency, sum(u.cost_micros)::bigint, sum(u.input_tokens + u.output_tokens)::bigint
  FROM usage_daily u WHERE u.day = wanted GROUP BY u.channel, u.currency;
$$

DO $$
BEGIN
  REVOKE ALL ON FUNCTION citeloop_channel_spend(date) FROM PUBLIC;
  GRANT EXECUTE ON FUNCTION citeloop_channel_spend(date) TO citeloop_app;
END $$
