-- Grain: one row per project and ISO week (Monday to Sunday) with at least one loaded day.
CREATE OR REPLACE VIEW site_weeks AS
SELECT
  project,
  date_trunc('week', day)::DATE AS week,
  strftime(day, '%G-W%V') AS iso_week,
  sum(human)::BIGINT AS human,
  sum(ai)::BIGINT AS ai,
  sum(total)::BIGINT AS total,
  sum(ai) / nullif(sum(human) + sum(ai), 0) AS ai_share,
  count(*) AS days_loaded,
  days_loaded = 7 AND NOT bool_or(is_outage) AS is_whole
FROM site_days
GROUP BY ALL;

COMMENT ON VIEW site_weeks IS 'Views of the whole site by ISO week. One row per project and week with at least one loaded day; a week is complete when days_loaded is 7.';
COMMENT ON COLUMN site_weeks.project IS 'Project id on the platform';
COMMENT ON COLUMN site_weeks.week IS 'Monday of the week';
COMMENT ON COLUMN site_weeks.iso_week IS 'ISO week, such as 2026-W46';
COMMENT ON COLUMN site_weeks.human IS 'Human views';
COMMENT ON COLUMN site_weeks.ai IS 'AI views';
COMMENT ON COLUMN site_weeks.total IS 'Total views as reported by the platform';
COMMENT ON COLUMN site_weeks.ai_share IS 'AI views as a share of human and AI views, 0 to 1; NULL if there were none';
COMMENT ON COLUMN site_weeks.days_loaded IS 'Number of days of the week that are loaded, 1 to 7';
COMMENT ON COLUMN site_weeks.is_whole IS 'Whether all seven days are loaded, and none is an outage as in site_days: only such weeks show what is usual';
