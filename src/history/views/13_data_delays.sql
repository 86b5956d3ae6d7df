-- Grain: one row per project with loaded days.
CREATE OR REPLACE VIEW data_delays AS
WITH
  loaded AS (
    SELECT days.project, max(days.day) AS loaded_until, max(site_days.day) AS views_until
    FROM days LEFT JOIN site_days USING (project, day)
    GROUP BY days.project
  ),

  -- When days that are ten days to five weeks old had 99% of the views that they have now. Only days
  -- that were loaded on the day after them tell, and outages do not.
  measured AS (
    SELECT
      days.project,
      days.day,
      coalesce(max(restated_at::DATE - days.day) FILTER (total_before < 0.99 * total), 1) AS late
    FROM days JOIN loaded USING (project) LEFT JOIN restatements USING (project, day) ANTI JOIN internal.outages USING (project, day)
    WHERE
      loaded_until - days.day BETWEEN 9 AND 36
      AND first_loaded_at::DATE = days.day + 1
    GROUP BY days.project, days.day
  )

SELECT
  project,
  any_value(views_until) AS views_until,
  any_value(loaded_until - views_until)::INTEGER AS days_awaited,
  count(late)::INTEGER AS days_measured,
  if(days_measured >= 7, quantile_disc(late, 0.75), NULL)::INTEGER AS delay_days
FROM loaded LEFT JOIN measured USING (project)
GROUP BY project;

COMMENT ON VIEW data_delays IS 'How late the views of a day arrive. One row per project with loaded days.';
COMMENT ON COLUMN data_delays.project IS 'Project id on the platform';
COMMENT ON COLUMN data_delays.views_until IS 'Last day in site_days';
COMMENT ON COLUMN data_delays.days_awaited IS 'Number of loaded days after it, without any view, whose views may not have come yet';
COMMENT ON COLUMN data_delays.days_measured IS 'Number of days on which delay_days is based: those that ended ten days to five weeks ago, were loaded on the next day, and are no outages';
COMMENT ON COLUMN data_delays.delay_days IS 'Days from a day until 99% of its views have come, for three in four of those days: 1 is the next day; NULL with fewer than 7 of them';
