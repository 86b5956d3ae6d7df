-- Grain: one row per project and week whose movers were kept.
CREATE TABLE kept_movers (
  project VARCHAR NOT NULL,
  week DATE NOT NULL,
  inputs VARCHAR NOT NULL,
  movers STRUCT(
    project VARCHAR,
    path VARCHAR,
    audience VARCHAR,
    change DOUBLE,
    human BIGINT,
    human_expected DOUBLE,
    human_low DOUBLE,
    human_high DOUBLE,
    human_z DOUBLE,
    human_weeks STRUCT(week DATE, low DOUBLE, high DOUBLE)[],
    ai BIGINT,
    ai_expected DOUBLE,
    ai_low DOUBLE,
    ai_high DOUBLE,
    ai_z DOUBLE,
    ai_weeks STRUCT(week DATE, low DOUBLE, high DOUBLE)[],
    weeks_seen BIGINT
  )[] NOT NULL
);

COMMENT ON TABLE kept_movers IS 'The answers of movers(week_start) for the last full weeks, which take long to compute on a large site. One row per project and week.';
COMMENT ON COLUMN kept_movers.project IS 'Project id on the platform';
COMMENT ON COLUMN kept_movers.week IS 'First of the seven days';
COMMENT ON COLUMN kept_movers.inputs IS 'Digest of all that the answer depends on; movers computes it again if that has changed';
COMMENT ON COLUMN kept_movers.movers IS 'The rows of the answer';
