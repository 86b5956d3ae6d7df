-- Grain: one row with the views of a range and their change, as the macro `changes` defines it.
SELECT *, ai_share - ai_share_before AS share_difference
FROM changes($from, $to, $shift, per := 'site')
WHERE project = $project
