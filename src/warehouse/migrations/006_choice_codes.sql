CREATE TEMP TABLE old_choices AS
SELECT
  *,
  CASE
    WHEN
      regexp_matches(why, '^number \d+ in sustained reading, with [\d,]+ human views \(number \d+\) and [\d,]+ AI views \(number \d+\) in a median week of the last \d+; ')
      THEN 'flagged'
    WHEN why LIKE 'not a plain path%' THEN 'not-plain'
    WHEN why = 'excluded by improve.exclude' THEN 'excluded'
    WHEN why = 'not in the sitemap' THEN 'not-in-sitemap'
    WHEN regexp_matches(why, '^viewed on \d+ days') THEN 'few-days'
    WHEN regexp_matches(why, '^viewed by people on \d+ days') THEN 'few-days-by-people'
    WHEN regexp_matches(why, '^has job \d+, \w+$') THEN 'has-job'
    WHEN regexp_matches(why, '^had job \d+, ended \d{4}-\d\d-\d\d: less than \d+ days ago$') THEN 'had-job'
    WHEN regexp_matches(why, '^waits for a later run: improve\.maxJobsPer(Run|Week) is \d+$') THEN 'limit'
    ELSE 'other'
  END AS code
FROM page_choices;

DROP TABLE page_choices;

-- Grain: one row per project and page considered in the latest selection. The reason is a code, with
-- facts as JSON; 0.1.0 stored a sentence.
CREATE TABLE page_choices (
  project VARCHAR NOT NULL,
  path VARCHAR NOT NULL,
  chosen_at TIMESTAMP NOT NULL,
  is_flagged BOOLEAN NOT NULL,
  code VARCHAR NOT NULL,
  facts VARCHAR NOT NULL,
  weekly_human DOUBLE NOT NULL,
  weekly_ai DOUBLE NOT NULL
);

INSERT INTO page_choices BY NAME
SELECT
  * EXCLUDE (why),
  CASE code
    WHEN 'flagged'
      THEN
        json_object(
          'rank', TRY_CAST(regexp_extract(why, '^number (\d+)', 1) AS INTEGER),
          'weekly_human', weekly_human,
          'human_rank', TRY_CAST(regexp_extract(why, 'human views \(number (\d+)\)', 1) AS INTEGER),
          'weekly_ai', weekly_ai,
          'ai_rank', TRY_CAST(regexp_extract(why, 'AI views \(number (\d+)\)', 1) AS INTEGER),
          'ai_per_human', TRY_CAST(regexp_extract(why, ', ([\d.]+) AI views for each', 1) AS DOUBLE),
          'trend',
          CASE
            WHEN why LIKE '%; steady, %' THEN 0
            ELSE TRY_CAST(replace(regexp_extract(why, '; ([+−-][\d,.]+)%', 1).replace(',', ''), '−', '-') AS DOUBLE) / 100
          END,
          'weeks', TRY_CAST(regexp_extract(why, 'week of the last (\d+);', 1) AS INTEGER)
        )
    WHEN 'few-days' THEN json_object('days', TRY_CAST(regexp_extract(why, '\d+') AS INTEGER))
    WHEN 'few-days-by-people' THEN json_object('days', TRY_CAST(regexp_extract(why, '\d+') AS INTEGER))
    WHEN 'has-job'
      THEN json_object('job', TRY_CAST(regexp_extract(why, '\d+') AS INTEGER), 'state', regexp_extract(why, '\w+$'))
    WHEN 'had-job'
      THEN
        json_object(
          'job', TRY_CAST(regexp_extract(why, '\d+') AS INTEGER),
          'ended', regexp_extract(why, '\d{4}-\d\d-\d\d'),
          'cooldown_days', TRY_CAST(regexp_extract(why, 'less than (\d+)', 1) AS INTEGER)
        )
    WHEN 'limit'
      THEN
        json_object(
          'setting', regexp_extract(why, 'maxJobsPer\w+'),
          'limit', TRY_CAST(regexp_extract(why, '\d+$') AS INTEGER)
        )
    WHEN 'other' THEN json_object('words', why)
    ELSE '{}'
  END AS facts
FROM old_choices;

DROP TABLE old_choices;
