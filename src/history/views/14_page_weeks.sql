-- Grain: one row per project, ISO week and page viewed that week.
CREATE OR REPLACE VIEW page_weeks AS
SELECT
  project,
  date_trunc('week', day)::DATE AS week,
  page AS path,
  sum(human)::BIGINT AS human,
  sum(ai)::BIGINT AS ai,
  sum(total)::BIGINT AS total,
  count(DISTINCT day) AS days_viewed
FROM page_views
GROUP BY ALL;

COMMENT ON VIEW page_weeks IS 'Views of each page by ISO week. One row per project, week and page viewed that week.';
COMMENT ON COLUMN page_weeks.project IS 'Project id on the platform';
COMMENT ON COLUMN page_weeks.week IS 'Monday of the week';
COMMENT ON COLUMN page_weeks.path IS 'Page, as page_of(path) has it';
COMMENT ON COLUMN page_weeks.human IS 'Human views';
COMMENT ON COLUMN page_weeks.ai IS 'AI views';
COMMENT ON COLUMN page_weeks.total IS 'Total views as reported by the platform';
COMMENT ON COLUMN page_weeks.days_viewed IS 'Number of days that week on which the page was viewed, 1 to 7';
