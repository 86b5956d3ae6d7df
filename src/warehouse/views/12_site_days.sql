-- Grain: one row per project and loaded day, including days with no views.
CREATE OR REPLACE VIEW site_days AS
SELECT
  project,
  day,
  human,
  ai,
  total,
  ai / nullif(human + ai, 0) AS ai_share,
  pages,
  state
FROM day_loads
WHERE loaded_at IS NOT NULL;

COMMENT ON VIEW site_days IS 'Views of the whole site by day. One row per project and loaded day; days that are not loaded have no row.';
COMMENT ON COLUMN site_days.project IS 'Project id on the platform';
COMMENT ON COLUMN site_days.day IS 'Day (UTC)';
COMMENT ON COLUMN site_days.human IS 'Human views';
COMMENT ON COLUMN site_days.ai IS 'AI views';
COMMENT ON COLUMN site_days.total IS 'Total views as reported by the platform';
COMMENT ON COLUMN site_days.ai_share IS 'AI views as a share of human and AI views, 0 to 1; NULL if there were none';
COMMENT ON COLUMN site_days.pages IS 'Number of pages viewed';
COMMENT ON COLUMN site_days.state IS 'provisional, final, inconsistent or failed, as in day_loads';
