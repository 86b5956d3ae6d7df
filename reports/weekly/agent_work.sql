-- Grain: one row per agent job that is not merged, and is active or ended in the reported week or
-- later. A pull request that was closed without being merged needs no review.
SELECT
  id,
  path,
  state,
  if(closed_on IS NULL, pr_link, NULL) AS pr_link,
  if(closed_on IS NULL, note, 'Its pull request was closed without being merged.') AS note
FROM jobs
WHERE project = $project AND merged_on IS NULL AND (ended_at IS NULL OR ended_at >= $from::DATE)
ORDER BY id
