-- Grain: one row. Whether to rewrite the attached `publication` instead of updating a copy: a new
-- quarter has begun (so the days of the last one can be sorted together), more than a twentieth of
-- its rows were deleted, more than an eighth of all rows changed, or a user added, dropped or altered a table.
WITH
  live AS (SELECT date_trunc('quarter', max(day)) AS quarter, coalesce(sum(pages), 0) AS pages FROM main.day_loads),
  published AS (SELECT date_trunc('quarter', max(day)) AS quarter FROM publication.day_loads),
  changed AS (SELECT coalesce(sum(pages), 0) AS pages FROM main.day_loads SEMI JOIN changed_days USING (project, day)),
  tables AS (
    SELECT
      list(sql ORDER BY table_name) FILTER (database_name = 'publication') AS published,
      list(sql ORDER BY table_name) FILTER (database_name = current_database()) AS live
    FROM duckdb_tables()
    WHERE schema_name = 'main'
  ),
  -- Rows are deleted only with changed days; counting their places reads them all.
  stored AS (
    SELECT count(*) AS rows, coalesce(max(rowid) + 1, 0) AS places
    FROM publication.page_views
    WHERE EXISTS (FROM changed_days)
  )
SELECT
  live.quarter IS DISTINCT FROM published.quarter
  OR stored.places - stored.rows > stored.rows / 20
  OR changed.pages > live.pages / 8
  OR tables.published IS DISTINCT FROM tables.live AS must_be_whole
FROM live, published, changed, tables, stored
