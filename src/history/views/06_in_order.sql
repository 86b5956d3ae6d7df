-- True if the first of two days is not after the last one; fails otherwise.
CREATE OR REPLACE MACRO internal.in_order(first_day, last_day) AS
CASE
  WHEN last_day::DATE >= first_day::DATE THEN true
  WHEN last_day::DATE < first_day::DATE
    THEN error('The last day, ' || last_day::DATE || ', is before the first, ' || first_day::DATE || ': write the earlier day first')
END;
