UPDATE step_results
SET basis = $basis
WHERE step = $step
