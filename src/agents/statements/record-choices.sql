INSERT INTO page_choices BY NAME
SELECT $project AS project, $now::TIMESTAMP AS chosen_at, choice.*
FROM
  (
    SELECT
      unnest(
        from_json(
          $choices,
          '[{"path": "VARCHAR", "is_flagged": "BOOLEAN", "code": "VARCHAR", "facts": "VARCHAR", "weekly_human": "DOUBLE", "weekly_ai": "DOUBLE"}]'
        )
      ) AS choice
  )
