DELETE FROM lake_months WHERE dataset = $dataset AND month = $month;
INSERT INTO lake_months VALUES ($dataset, $month, $fingerprint, $digest, $now, $files)
