-- Takes back the requests of entries that were not sent: $unused is a JSON list of pairs, an entry's id and how many.
UPDATE request_uses
SET requests = requests - returned.unused
FROM (
  SELECT (pair ->> 0) AS id, (pair ->> 1)::INTEGER AS unused
  FROM (SELECT unnest(json_transform($unused, '["JSON"]')) AS pair)
) AS returned
WHERE request_uses.id = returned.id
