-- Grain: one row per project, day and finding.
CREATE OR REPLACE VIEW data_quality AS
WITH tried AS (SELECT project, day FROM day_loads UNION SELECT project, day FROM day_failures)

SELECT project, day, state AS finding, coalesce(failure, 'may still change: loaded before it settled') AS detail
FROM day_loads
WHERE state <> 'final'
UNION ALL
SELECT project, day, 'failed', failure
FROM day_failures
UNION ALL
SELECT
  project,
  day,
  'unattributed',
  format('{:+d} human, {:+d} AI in the site total that no page accounts for', unattributed_human, unattributed_ai)
FROM day_loads
WHERE unattributed_human <> 0 OR unattributed_ai <> 0 OR unattributed_total <> 0
UNION ALL
SELECT project, day, 'total is not human + ai', format('total {:d}, human + ai {:d}', total, human + ai)
FROM day_loads
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
    FROM tried
    GROUP BY project
  ) AS gap
  ANTI JOIN tried USING (project, day);

COMMENT ON VIEW data_quality IS 'Days to treat with care: provisional, failed, inconsistent, restated or missing, or with totals that do not add up. One row per project, day and finding.';
COMMENT ON COLUMN data_quality.project IS 'Project id on the platform';
COMMENT ON COLUMN data_quality.day IS 'Day (UTC)';
COMMENT ON COLUMN data_quality.finding IS 'What was found: provisional, inconsistent, failed, unattributed, total is not human + ai, restated or missing';
COMMENT ON COLUMN data_quality.detail IS 'The finding explained';
