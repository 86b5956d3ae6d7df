-- Grain: one row: the first days with views on the platform, as JSON.
SELECT json_group_array(json_object('project', project, 'day', json_extract(value, '$')) ORDER BY project) AS rows
FROM platform_facts
WHERE fact = 'first day'
