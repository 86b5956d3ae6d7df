INSERT INTO notes BY NAME
SELECT $project AS project, note.*
FROM
  (SELECT unnest(from_json($notes, '[{"day": "DATE", "text": "VARCHAR", "path": "VARCHAR", "is_break": "BOOLEAN"}]')) AS note)
