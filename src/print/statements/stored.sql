-- One row: how many days are stored, and a popular page whose path needs no quoting in a shell.
SELECT
  (SELECT count(*) FROM day_loads WHERE loaded_at IS NOT NULL)::INTEGER AS days,
  (SELECT path FROM top_pages($first, $last) WHERE regexp_full_match(path, '/[-\w/.]+') LIMIT 1) AS page
