-- Grain: one row per audience and pull request that was merged in the twelve weeks up to the end of
-- the reported week, latest first, or that ended in them and may not be merged yet; also per change that a person recorded.
SELECT job, effects.path, audience, effects.merged_on, weeks_after, comparison_pages, verdict, why, ratio, low, high
FROM job_effects AS effects LEFT JOIN jobs ON jobs.id = effects.job
WHERE effects.project = $project AND coalesce(effects.merged_on, ended_at::DATE) BETWEEN $to::DATE - 83 AND $to::DATE
ORDER BY effects.merged_on DESC NULLS LAST, job, audience DESC
