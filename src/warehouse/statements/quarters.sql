-- Grain: one row per project and quarter from its first views to its last, in the order in which they are published.
SELECT
  project,
  unnest(generate_series(date_trunc('quarter', min(day)), max(day), INTERVAL 3 MONTH))::DATE AS quarter
FROM main.page_views
GROUP BY project
ORDER BY project, quarter
