-- Grain: one row per project and period ('day', 'week', 'month', 'quarter' or 'year') between two
-- days, inclusive.
CREATE OR REPLACE MACRO human_vs_ai(first_day, last_day, grain) AS TABLE
FROM
  (
    SELECT
      project,
      date_trunc(grain, day)::DATE AS period,
      sum(human)::BIGINT AS human,
      sum(ai)::BIGINT AS ai,
      sum(ai) / nullif(sum(human) + sum(ai), 0) AS ai_share,
      count(*) AS days_loaded
    FROM site_days
    WHERE
      day BETWEEN first_day::DATE AND last_day::DATE
      AND is_own_file()
    GROUP BY ALL
    -- Without this, DuckDB would read nothing between days in the wrong order, and say nothing.
    UNION ALL BY NAME
    SELECT NULL AS project WHERE NOT internal.in_order(first_day, last_day)
  )
ORDER BY project, period;

COMMENT ON MACRO TABLE human_vs_ai IS 'Human and AI views by period between two days. Both days are included; a period is a day, week, month, quarter or year. One row per project and period; period is its first day, and days_loaded is the number of its days that are loaded. FROM human_vs_ai(''2026-01-01'', ''2026-12-31'', ''month'')';
