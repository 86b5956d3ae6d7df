-- Grain: one row per project and page that moved in the seven days from `week_start`, largest change
-- first. Only fully loaded weeks since the last break are used. The model, on a log scale: a page's
-- views are its usual level, plus the trend of the site's median page, plus noise.
CREATE OR REPLACE MACRO movers(week_start, project_id := NULL) AS TABLE
WITH
  -- Breaks are in a subquery of their own, because a join cannot contain the argument if that is a
  -- subquery.
  break AS (
    SELECT project, path, day, week_start::DATE - day AS days_ago
    FROM notes
    WHERE is_break AND day <= week_start::DATE + 6
  ),

  -- This week (0) and up to eight full weeks out of the twelve before it. Empty if this week is not
  -- fully loaded or has an outage.
  site_week AS (
    SELECT project, (week_start::DATE - day + 6) // 7 AS weeks_ago
    FROM site_days
    ANTI JOIN break ON break.path = '*' AND break.project = site_days.project AND break.day > site_days.day
    WHERE
      project = coalesce(project_id, project)
      AND day BETWEEN week_start::DATE - 84 AND week_start::DATE + 6
      AND is_own_file()
    GROUP BY project, weeks_ago
    HAVING count(*) = 7 AND NOT bool_or(is_outage)
    QUALIFY
      row_number() OVER (PARTITION BY project ORDER BY weeks_ago) <= 9
      AND min(weeks_ago) OVER (PARTITION BY project) = 0
  ),

  -- A page is compared only since its last break.
  address_break AS (
    SELECT path_id, min(days_ago) AS days_ago
    FROM
      internal.paths AS paths
      JOIN internal.projects AS projects ON projects.project_id = paths.project_id
      JOIN break ON break.project = projects.project AND page GLOB break.path
    GROUP BY path_id
  ),

  -- By the numbers of addresses, because names take longer to compare. Bit 3 of `weeks` is set if an address was viewed three
  -- weeks ago; the other columns are of this week, and of all weeks.
  address AS (
    SELECT
      counts.path_id,
      bit_or(1 << (week_start::DATE - day + 6) // 7) AS weeks,
      sum(human) FILTER (day >= week_start::DATE) AS human,
      sum(ai) FILTER (day >= week_start::DATE) AS ai,
      count(*) FILTER (day >= week_start::DATE) AS days,
      sum(human) AS all_human,
      sum(ai) AS all_ai
    FROM
      internal.counts AS counts
      JOIN internal.projects AS projects ON projects.project_id = counts.project_id
      ANTI JOIN address_break ON address_break.path_id = counts.path_id AND 7 * ((week_start::DATE - day + 6) // 7) > days_ago
    WHERE projects.project = coalesce(project_id, projects.project) AND day BETWEEN week_start::DATE - 84 AND week_start::DATE + 6
    GROUP BY counts.path_id
  ),

  viewed AS (
    SELECT
      projects.project,
      page AS path,
      min(path_id) AS page_id,
      list(path_id) AS addresses,
      bit_or(weeks) AS weeks,
      coalesce(sum(human), 0) AS human,
      coalesce(sum(ai), 0) AS ai,
      max(days) AS days,
      sum(all_human) AS all_human,
      sum(all_ai) AS all_ai
    FROM address JOIN internal.paths AS paths USING (path_id) JOIN internal.projects AS projects ON projects.project_id = paths.project_id
    GROUP BY ALL
  ),

  -- A page counts from the week it was first seen; `k` is the number of full weeks since then, without this one. Most pages
  -- cannot move, and their weeks are not read. Without views in more than half of their weeks, no views are usual, so they
  -- cannot fall. Unless an address was viewed on three days of this week, their core is empty, so they cannot rise. They only
  -- count among the pages that are judged, and as new names of others.
  page AS MATERIALIZED (
    SELECT
      viewed.* EXCLUDE (weeks),
      floor(log2(viewed.weeks))::INTEGER AS first_seen,
      bit_count(site.weeks & ((1 << first_seen + 1) - 1)) AS k,
      2 * bit_count(viewed.weeks & site.weeks) >= k AS is_usual,
      (k >= 3 AND is_usual) OR (days >= 3 AND (is_usual OR greatest(human, ai) >= 8)) AS may_move
    FROM
      -- The earlier weeks. They come first, because DuckDB names the first table that it does not find where another database is used.
      (SELECT project, sum(1 << weeks_ago)::BIGINT - 1 AS weeks FROM site_week GROUP BY project) AS site
      JOIN viewed USING (project)
    WHERE CASE WHEN greatest(all_human, all_ai) >= 8 AND (may_move OR first_seen <= 1 OR greatest(human, ai) >= 20) THEN is_page(path) ELSE false END
  ),

  -- Bots visit an address in one night, sometimes past midnight, so the views without its two largest
  -- days are its core.
  address_week AS (
    SELECT
      any_value(page_id) AS page_id,
      (week_start::DATE - day + 6) // 7 AS weeks_ago,
      sum(human)::DOUBLE AS human,
      sum(ai)::DOUBLE AS ai,
      sum(human) - list_sum(max(human, 2)) AS human_core,
      sum(ai) - list_sum(max(ai, 2)) AS ai_core
    FROM
      internal.counts AS counts
      JOIN (SELECT page_id, unnest(addresses) AS path_id FROM page WHERE may_move) AS address USING (path_id)
      ANTI JOIN address_break ON address_break.path_id = counts.path_id AND 7 * ((week_start::DATE - day + 6) // 7) > days_ago
    WHERE day BETWEEN week_start::DATE - 84 AND week_start::DATE + 6
    GROUP BY counts.path_id, weeks_ago
  ),

  page_week AS (
    SELECT page_id, weeks_ago, sum(human) AS human, sum(ai) AS ai, sum(human_core) AS human_core, sum(ai_core) AS ai_core
    FROM address_week
    GROUP BY page_id, weeks_ago
  ),

  -- One row per audience, page and week, including weeks with no views.
  cell AS MATERIALIZED (
    SELECT
      project,
      audience,
      page_id,
      weeks_ago,
      coalesce(if(audience = 'human', human, ai), 0) AS n,
      coalesce(if(audience = 'human', human_core, ai_core), 0) AS core,
      ln(n + 0.5) AS size,
      ln(core + 0.5) AS core_size
    FROM
      -- Smaller pages, which are most of them, cannot be listed.
      (SELECT project, page_id, first_seen FROM page SEMI JOIN (SELECT page_id FROM page_week GROUP BY page_id HAVING max(greatest(human, ai)) >= 8) USING (page_id))
      JOIN site_week USING (project)
      LEFT JOIN page_week USING (page_id, weeks_ago)
      CROSS JOIN (VALUES ('human'), ('ai')) AS audiences (audience)
    WHERE weeks_ago <= first_seen
  ),

  -- Only pages viewed in every week set the trend, so pages that vanish do not affect it.
  steady AS (
    SELECT
      project,
      audience,
      page_id,
      true AS is_steady,
      median(size) FILTER (weeks_ago > 0) AS middle,
      median(core_size) FILTER (weeks_ago > 0) AS core_middle
    FROM cell SEMI JOIN (SELECT audience, page_id FROM cell GROUP BY audience, page_id HAVING min(core) > 0) USING (audience, page_id)
    GROUP BY ALL
    HAVING middle >= ln(8)
  ),

  -- A median, so that spam on one page does not make all others appear to fall.
  trend AS MATERIALIZED (
    SELECT
      project,
      audience,
      weeks_ago,
      median(size - middle) AS trend,
      median(core_size - core_middle) AS core_trend
    FROM cell JOIN steady USING (project, audience, page_id)
    GROUP BY ALL
  ),

  -- The page's usual level relative to the trend, and the variance of its core around it beyond
  -- chance.
  usual AS (
    SELECT
      project,
      audience,
      page_id,
      is_steady,
      max(n) FILTER (weeks_ago = 0) AS n,
      count(*) FILTER (weeks_ago > 0) AS k,
      median(size - trend) FILTER (weeks_ago > 0) AS usual,
      max(size - trend) FILTER (weeks_ago = 0) - usual AS deviation,
      exp(usual + max(trend) FILTER (weeks_ago = 0)) AS mu,
      greatest(max(n) FILTER (weeks_ago = 0), mu) >= 20 AS is_judged,
      median(core_size - core_trend) FILTER (weeks_ago > 0) AS core_usual,
      max(core_size - core_trend) FILTER (weeks_ago = 0) - core_usual AS core_deviation,
      arg_min(core_size - core_trend, weeks_ago) FILTER (weeks_ago > 0) - core_usual AS deviation_before,
      exp(core_usual + max(core_trend) FILTER (weeks_ago = 0)) AS core_mu,
      list({week: weeks_ago, size: core_size - core_trend}) FILTER (is_steady AND weeks_ago > 0) AS cores,
      (sum((core_size - core_trend) ^ 2) FILTER (weeks_ago > 0)
      - 2 * core_usual * sum(core_size - core_trend) FILTER (weeks_ago > 0)
      + k * core_usual ^ 2) / (k - 1)
      - exp(-core_usual) AS psi
    FROM cell JOIN trend USING (project, audience, weeks_ago) LEFT JOIN steady USING (project, audience, page_id)
    GROUP BY project, audience, page_id, is_steady
    HAVING k >= 3
  ),

  -- A few weeks say little about a page's variance, so the median variance counts as eight more
  -- weeks, and is also the minimum.
  measured AS (
    SELECT
      *,
      greatest(median_psi, (8 * median_psi + (k - 1) * psi) / (7 + k)) AS noise,
      sqrt((1 / mu + noise) * (1 + 1.57 / k)) AS sigma,
      sqrt((1 / core_mu + noise) * (1 + 1.57 / k)) AS core_sigma
    FROM
      usual
      -- DuckDB computes a median over a window once per page.
      JOIN (
        SELECT project, audience, greatest(0, median(psi) FILTER (is_steady AND is_judged)) / 0.9 AS median_psi
        FROM usual
        GROUP BY ALL
      ) AS audiences USING (project, audience)
  ),

  -- In a volatile week, all pages deviate more than their earlier weeks suggest; if fewer than ten can
  -- be judged, smaller pages show it too. A rise counts as far as it shows in the core, which has fewer
  -- views and therefore more noise.
  placed AS (
    SELECT
      *,
      sigma * excess AS spread,
      if(deviation > 0, greatest(0, least(deviation / sigma, 1.3 * core_deviation / core_sigma)), deviation / sigma) * sigma / spread AS t
    FROM
      measured
      JOIN (
        SELECT
          project,
          audience,
          greatest(
            1,
            if(
              count(*) FILTER (is_steady AND is_judged) >= 10,
              median(abs(deviation) / sigma) FILTER (is_steady AND is_judged),
              median(abs(deviation) / sigma) FILTER (is_steady)
            ) / 0.69
          ) AS excess
        FROM measured
        GROUP BY ALL
      ) AS audiences USING (project, audience)
  ),

  -- On some sites, extreme weeks are common. There, from one earlier week to the next, the outermost
  -- three in a hundred pages change more than the 3.6 times as much as the median page that are normal.
  -- With few pages, this may be chance. A page that stays at a new level counts in one week only.
  tail AS (
    SELECT project, least(0.3, greatest(0, 0.4 * (median(outermost) - 3.6 - 20 / max(pages)))) AS tail
    FROM
      (
        SELECT project, week, quantile_cont(change, 0.97) / median(change) AS outermost, count(*) AS pages
        FROM
          (
            SELECT
              project,
              core.week,
              abs(core.size - lag(core.size) OVER (PARTITION BY project, audience, page_id ORDER BY core.week))
              / sqrt(1 / core_mu + median_psi) AS change
            FROM (SELECT *, unnest(cores) AS core FROM placed WHERE is_steady AND mu >= 40 AND k >= 6)
          )
        GROUP BY project, week
      )
    GROUP BY project
  ),

  -- `z` follows a normal distribution if nothing moved. With fewer than six earlier weeks, a slightly
  -- heavy tail is assumed.
  judged AS (
    SELECT *, 1 / (7 + k) + coalesce(tail, 0.06) AS weight, sign(t) * sqrt(ln(1 + weight * t ^ 2) / weight) AS z
    FROM placed LEFT JOIN tail USING (project)
  ),

  -- A page was renamed if its views and those of a page first seen this week or the last add up to
  -- what was expected, in each audience with enough views to tell.
  renamed AS (
    SELECT old.project, old.page_id
    FROM
      (
        SELECT
          project,
          page_id,
          -- The views of a new page that would explain those of an audience; any if it has too few to tell.
          coalesce(max(mu * exp(-2.5 * spread) - n - 0.5) FILTER (audience = 'human'), 0) AS human_low,
          coalesce(max(mu * exp(2.5 * spread) - n - 0.5) FILTER (audience = 'human'), 'inf') AS human_high,
          coalesce(max(mu * exp(-2.5 * spread) - n - 0.5) FILTER (audience = 'ai'), 0) AS ai_low,
          coalesce(max(mu * exp(2.5 * spread) - n - 0.5) FILTER (audience = 'ai'), 'inf') AS ai_high
        FROM judged
        WHERE is_judged
        GROUP BY project, page_id
        HAVING max(deviation) < -ln(1.25) AND min(z) < -2.5
      ) AS old
      SEMI JOIN (
        SELECT DISTINCT project, human, ai
        FROM page
        WHERE first_seen <= 1 AND greatest(human, ai, all_human - human, all_ai - ai) >= 8
      ) AS new
        ON new.project = old.project AND human BETWEEN human_low AND human_high AND ai BETWEEN ai_low AND ai_high
  ),

  -- How many can be judged, and how far the last of ten that moved deviates at least.
  number AS (
    SELECT project, sum(counted)::BIGINT AS pages, 2 * ln(greatest(pages, 20) / 10) AS least
    FROM
      (
        SELECT project, count(*) AS counted
        FROM judged ANTI JOIN renamed USING (project, page_id)
        WHERE is_judged
        GROUP BY project
        UNION ALL
        SELECT project, sum((human >= 20)::INTEGER + (ai >= 20)::INTEGER)
        FROM page
        WHERE NOT may_move AND k >= 3
        GROUP BY project
      )
    GROUP BY project
  ),

  -- Pages are listed for as long as they deviate more than random variation would explain among so many pages, and among
  -- twenty if fewer can be judged: the most extreme of two deviates no more than any page does in most weeks.
  moved AS (
    SELECT project, page_id, path, audience
    FROM
      (
        SELECT judged.*, path, pages, row_number() OVER (PARTITION BY project ORDER BY abs(z) DESC, path, audience) AS place
        FROM judged ANTI JOIN renamed USING (project, page_id) JOIN number USING (project) JOIN page USING (project, page_id)
        WHERE is_judged AND z ^ 2 >= least
      )
    QUALIFY
      bool_and(z ^ 2 >= 2 * ln(greatest(pages, 20) / least(place, 10))) OVER (PARTITION BY project ORDER BY place)
      AND if(deviation > 0, least(deviation, core_deviation), -deviation) >= ln(1.25)
      -- A page that had already moved the week before is not listed again.
      AND sign(deviation) * deviation_before <= abs(deviation) / 2
  ),

  trends AS (
    SELECT
      project,
      audience,
      list({week: this_week - 7 * weeks_ago::INTEGER, trend: trend} ORDER BY weeks_ago DESC) AS trends
    FROM trend, (SELECT week_start::DATE AS this_week)
    GROUP BY ALL
  ),

  -- Both audiences of the pages that moved.
  shown AS (
    SELECT
      judged.*,
      path,
      moved.audience IS NOT NULL AS has_moved,
      greatest(0, mu - 0.5) AS expected,
      greatest(0, mu * exp(-2 * spread) - 0.5) AS low,
      mu * exp(2 * spread) - 0.5 AS high,
      list_transform(
        trends,
        lambda past: {
          week: past.week,
          low: greatest(0, exp(usual + past.trend - 2 * spread) - 0.5),
          high: exp(usual + past.trend + 2 * spread) - 0.5
        }
      ) AS weeks
    FROM
      judged
      JOIN trends USING (project, audience)
      JOIN (SELECT DISTINCT page_id, path FROM moved) USING (page_id)
      LEFT JOIN moved USING (project, page_id, path, audience)
  )

SELECT
  project,
  path,
  if(count(*) FILTER (has_moved) = 2, 'both', max(audience) FILTER (has_moved)) AS audience,
  arg_max(n - expected, abs(n - expected)) FILTER (has_moved) AS change,
  max(n) FILTER (audience = 'human')::BIGINT AS human,
  max(expected) FILTER (audience = 'human') AS human_expected,
  max(low) FILTER (audience = 'human') AS human_low,
  max(high) FILTER (audience = 'human') AS human_high,
  max(z) FILTER (audience = 'human') AS human_z,
  any_value(weeks) FILTER (audience = 'human') AS human_weeks,
  max(n) FILTER (audience = 'ai')::BIGINT AS ai,
  max(expected) FILTER (audience = 'ai') AS ai_expected,
  max(low) FILTER (audience = 'ai') AS ai_low,
  max(high) FILTER (audience = 'ai') AS ai_high,
  max(z) FILTER (audience = 'ai') AS ai_z,
  any_value(weeks) FILTER (audience = 'ai') AS ai_weeks,
  max(k) AS weeks_seen
FROM shown
GROUP BY project, path
ORDER BY project, abs(change) DESC, path;

COMMENT ON MACRO TABLE movers IS 'Pages with clearly more or fewer views than expected. It compares the seven days from the given one: FROM movers(''2026-11-09''). One row per project and page, without files and system addresses (is_page), largest change in views first; project_id := ''prj_1'' reads only that project. audience says whose views moved: human, ai or both; change is how many views more or fewer than expected they are, the larger one of both. human and ai are the views of the seven days. human_expected and ai_expected are the page''s usual views in the weeks_seen full weeks before (at most 8), adjusted by the trend of the site''s median page. 95% of the weeks of such a page lie between human_low and human_high, or ai_low and ai_high; human_weeks and ai_weeks have that range for each full week used, oldest first. human_z and ai_z are the differences in standard deviations; the more pages are compared, the larger they must be. Only fully loaded weeks without an outage (site_days) since the last break in notes count, and a page needs three of them before. A page is listed in the week in which it moves, not in those after. A rise is judged without the two busiest days of each week, so a bot of one night is not listed. Changes under 25%, pages under 20 views and pages that got a new address are left out.';
