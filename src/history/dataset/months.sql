-- Grain: one row per project and month of `days`, with how many views it has, and a digest of its days.
SELECT
  project,
  strftime(day, '%Y-%m') AS month,
  sum(pages)::BIGINT AS rows,
  md5(string_agg(concat_ws(' ', day, state, epoch_us(loaded_at), human, ai, total, pages), ',' ORDER BY day)) AS digest
FROM days
GROUP BY ALL
ORDER BY project, month
