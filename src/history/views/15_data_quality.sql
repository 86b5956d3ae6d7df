-- Grain: one row per project, day and finding.
CREATE OR REPLACE VIEW data_quality AS
WITH known AS (SELECT project, day FROM days UNION SELECT project, day FROM day_failures)

SELECT project, day, state AS finding, coalesce(problem, 'may still change: loaded before it settled') AS detail
FROM days
WHERE state <> 'final'
UNION ALL
-- A failure is over once the day has been read.
SELECT day_failures.project, day_failures.day, 'failed', failure
FROM day_failures LEFT JOIN days USING (project, day)
WHERE checked_at IS NULL OR attempted_at >= checked_at
UNION ALL
SELECT
  project,
  day,
  'unattributed',
  format('{:+d} human, {:+d} AI in the site total that no page accounts for', unattributed_human, unattributed_ai)
FROM days
WHERE unattributed_human <> 0 OR unattributed_ai <> 0 OR unattributed_total <> 0
UNION ALL
SELECT project, day, 'total is not human + ai', format('total {:d}, human + ai {:d}', total, human + ai)
FROM days
WHERE total <> human + ai
UNION ALL
SELECT
  project,
  day,
  'restated',
  format('{:+d} views in {:d} pages, seen {}', total_after - total_before, pages_changed, strftime(restated_at, '%Y-%m-%d %H:%M UTC'))
FROM restatements
UNION ALL
SELECT project, gap.day::DATE, 'missing', 'never loaded'
FROM
  (
    SELECT project, unnest(generate_series(min(day), max(day), INTERVAL 1 DAY)) AS day
    FROM known
    GROUP BY project
  ) AS gap
  ANTI JOIN known USING (project, day);

COMMENT ON VIEW data_quality IS 'Days to treat with care, and why. They are provisional, failed, inconsistent, restated or missing, or with totals that do not add up. One row per project, day and finding.';
COMMENT ON COLUMN data_quality.project IS 'Project id on the platform';
COMMENT ON COLUMN data_quality.day IS 'Day (UTC)';
COMMENT ON COLUMN data_quality.finding IS 'What was found: provisional, inconsistent, failed, unattributed, total is not human + ai, restated or missing';
COMMENT ON COLUMN data_quality.detail IS 'The finding explained';
