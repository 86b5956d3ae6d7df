-- Grain: one row per project and address of a page that was viewed between two days, inclusive; most viewed first.
CREATE OR REPLACE MACRO page_addresses(page_path, first_day, last_day) AS TABLE
FROM
  (
    SELECT project, path, sum(human)::BIGINT AS human, sum(ai)::BIGINT AS ai, sum(total)::BIGINT AS total
    FROM page_views
    WHERE is_own_file() AND page = page_of(page_path) AND day BETWEEN first_day::DATE AND last_day::DATE
    GROUP BY project, path
    HAVING sum(human) + sum(ai) > 0
    -- Without this, DuckDB would read nothing between days in the wrong order, and say nothing.
    UNION ALL BY NAME
    SELECT NULL AS project WHERE NOT internal.in_order(first_day, last_day)
  )
ORDER BY human + ai DESC, path, project;

COMMENT ON MACRO TABLE page_addresses IS 'Views of one page between two days, by address. Both days are included. One page may have several addresses: people may read /quickstart, and AI /quickstart.md. One row per project and address, most viewed first: FROM page_addresses(''/quickstart'', ''2026-11-01'', ''2026-11-30'')';
