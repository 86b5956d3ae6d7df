-- The days that those between two are compared with. Whole calendar months are compared with as many before them, whose
-- number of days may differ; other days with as many before, unless it is said how many days or months earlier.
CREATE OR REPLACE MACRO internal.compared_days(first_day, last_day, days_earlier, months_earlier) AS
CASE
  WHEN days_earlier IS NULL AND (months_earlier IS NOT NULL OR (day(first_day::DATE) = 1 AND day(last_day::DATE + 1) = 1)) THEN
    {
      first: (first_day::DATE - to_months(coalesce(months_earlier, date_diff('month', first_day::DATE, last_day::DATE + 1))::INTEGER))::DATE,
      last: (last_day::DATE + 1 - to_months(coalesce(months_earlier, date_diff('month', first_day::DATE, last_day::DATE + 1))::INTEGER))::DATE - 1
    }
  WHEN days_earlier = 0 THEN {first: first_day::DATE, last: NULL::DATE}
  ELSE
    {
      first: first_day::DATE - coalesce(days_earlier, last_day::DATE - first_day::DATE + 1)::INTEGER,
      last: last_day::DATE - coalesce(days_earlier, last_day::DATE - first_day::DATE + 1)::INTEGER
    }
END;
