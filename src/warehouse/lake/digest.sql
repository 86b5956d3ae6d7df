-- Grain: one row, with a digest of some rows of a table in any order; empty without rows.
SELECT if(count(*) = 0, '', left(md5(count(*) || '-' || sum(hashed)), 16)) AS digest
FROM (SELECT {hashed} AS hashed FROM {rows})
