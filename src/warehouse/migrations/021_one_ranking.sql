-- Pages have one rank, by all views; the reason of a job says it.
ALTER TABLE agent_jobs DROP COLUMN human_rank;
ALTER TABLE agent_jobs DROP COLUMN ai_rank;
ALTER TABLE agent_jobs DROP COLUMN ai_per_human;

-- The next selection stores them again, with the reasons of this version.
DELETE FROM page_choices;
