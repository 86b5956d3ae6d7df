ALTER TABLE deliveries ADD COLUMN said VARCHAR;

COMMENT ON COLUMN deliveries.said IS 'What the report said, as JSON: headline, sentences and numbers per project, for a correction; NULL if unknown';
