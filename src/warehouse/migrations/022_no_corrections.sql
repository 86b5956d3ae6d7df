DROP MACRO TABLE IF EXISTS likely_breaks;

ALTER TABLE deliveries DROP COLUMN said;
