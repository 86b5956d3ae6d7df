-- Grain: one row per project and month with stored days, with a digest of those days.
SELECT
  project,
  strftime(day, '%Y-%m') AS month,
  sum(pages)::BIGINT AS rows,
  md5(string_agg(concat_ws(' ', day, state, loaded_at, human, ai, total, pages), ',' ORDER BY day)) AS days
FROM day_loads
WHERE loaded_at IS NOT NULL
GROUP BY ALL
ORDER BY project, month
