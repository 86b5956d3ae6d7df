-- Grain: one row per time that stored days were compared with the totals of the platform.
SELECT * FROM verifications ORDER BY verified_at
