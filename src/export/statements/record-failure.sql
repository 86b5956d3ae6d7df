-- Rows stored by an earlier load keep their numbers and loaded_at.
MERGE INTO day_loads
USING (SELECT $project AS project, $day::DATE AS day) AS failed USING (project, day)
WHEN MATCHED THEN
  UPDATE SET state = 'failed', attempted_at = $now::TIMESTAMP, failure = $failure, failures = failures + 1
WHEN NOT MATCHED THEN
  INSERT (project, day, state, attempted_at, failure, failures)
  VALUES (project, day, 'failed', $now::TIMESTAMP, $failure, 1)
