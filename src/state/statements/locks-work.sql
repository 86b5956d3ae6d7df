UPDATE workspace
SET locks_work_on = $device
