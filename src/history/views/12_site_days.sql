-- Grain: one row per project and loaded day, including days with no views, but not the latest days of
-- a site whose views have not come yet.
CREATE OR REPLACE VIEW site_days AS
WITH
  viewed AS (
    SELECT project, max(day) AS loaded_until, max(day) FILTER (total > 0) AS viewed_until
    FROM days
    GROUP BY project
  ),

  -- At most four weeks without any view, after four weeks in which every loaded day has some.
  awaited AS (
    SELECT project, viewed_until
    FROM days JOIN viewed USING (project)
    WHERE loaded_until - viewed_until BETWEEN 1 AND 28 AND viewed_until - day BETWEEN 0 AND 27
    GROUP BY project, viewed_until
    HAVING count(*) >= 14 AND min(total) > 0
  )

SELECT
  project,
  day,
  human,
  ai,
  total,
  ai / nullif(human + ai, 0) AS ai_share,
  pages,
  state,
  outage.day IS NOT NULL AS is_outage
FROM
  days
  LEFT JOIN awaited USING (project)
  LEFT JOIN (FROM internal.outages WHERE NOT is_filled) AS outage USING (project, day)
WHERE viewed_until IS NULL OR day <= viewed_until;

COMMENT ON VIEW site_days IS 'Views of the whole site by day. One row per project and loaded day; days that are not loaded have no row. If a site had views on each of its last days, and then none, the days without views have no row either for four weeks: their views may not have come yet.';
COMMENT ON COLUMN site_days.project IS 'Project id on the platform';
COMMENT ON COLUMN site_days.day IS 'Day (UTC)';
COMMENT ON COLUMN site_days.human IS 'Human views';
COMMENT ON COLUMN site_days.ai IS 'AI views';
COMMENT ON COLUMN site_days.total IS 'Total views as reported by the platform';
COMMENT ON COLUMN site_days.ai_share IS 'AI views as a share of human and AI views, 0 to 1; NULL if there were none';
COMMENT ON COLUMN site_days.pages IS 'Number of addresses viewed; several may be one page';
COMMENT ON COLUMN site_days.state IS 'provisional, final or inconsistent, as in days';
COMMENT ON COLUMN site_days.is_outage IS 'Whether the day has no views, although such a weekday with views typically has 20 or more in the half year before and after it. What is usual is computed without such days, and nothing is compared with them';
