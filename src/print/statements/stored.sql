-- One row: how many days are stored, and a popular page whose path needs no quoting in a shell.
SELECT
  (SELECT count(*) FROM day_loads WHERE loaded_at IS NOT NULL)::INTEGER AS days,
  -- Not of top_pages, which also computes what changed.
  (
    SELECT path
    FROM page_views
    WHERE day BETWEEN $first::DATE AND $last::DATE AND regexp_full_match(path, '/[-\w/.]+')
    GROUP BY project, path
    HAVING sum(total) > 0
    ORDER BY sum(total) DESC, path
    LIMIT 1
  ) AS page
