-- Grain: one row per table of the attached history of a shard, with the rows of it that belong to the union of all: without
-- other shards' projects, of which a shard that began with a copy has some that are as old as it is. Each shard numbers
-- its own jobs and messages, so job 17 of shard 3 is job 3000017 of the union.
WITH
  numbers (table_name, column_name) AS (
    VALUES
      ('agent_jobs', 'id'),
      ('agent_messages', 'id'),
      ('agent_messages', 'job'),
      ('experiment_pairs', 'job_id'),
      ('job_transitions', 'job'),
      ('job_transitions', 'message'),
      ('pull_requests', 'job')
  ),

  described AS (
    SELECT
      table_name,
      string_agg(format('{0} + {1} AS {0}', numbers.column_name, $shard * 1000000), ', ') AS numbered,
      bool_or(columns.column_name = 'project') AS has_project
    FROM duckdb_columns() AS columns
    SEMI JOIN duckdb_tables() USING (database_name, schema_name, table_name)
    LEFT JOIN numbers USING (table_name, column_name)
    WHERE
      database_name = $database
      AND schema_name = 'main'
      AND table_name NOT IN ('schema_version', 'workspace')
    GROUP BY table_name
  ),

  strangers AS (
    SELECT string_agg(format('''{}''', replace(project, '''', '''''')), ', ') AS names
    FROM (SELECT DISTINCT project FROM {database}.day_loads)
    WHERE NOT is_in_shard(project)
  )

SELECT
  table_name AS name,
  concat(
    'SELECT *',
    ' REPLACE (' || numbered || ')',
    format(' FROM "{}"."{}"', $database, replace(table_name, '"', '""')),
    CASE WHEN has_project THEN ' WHERE project NOT IN (' || names || ')' END
  ) AS rows
FROM described, strangers
ORDER BY table_name
