-- Whether a project is in the shard of this process, as `shardOf` in src/config/shard.ts has it. A row without a project,
-- which only another program can have written, counts as its own. Without shards, nothing is hashed.
CREATE OR REPLACE TEMP MACRO is_in_shard(project) AS
  getvariable('shards') = 1
  OR coalesce(('0x' || left(sha256(project), 8))::UBIGINT % getvariable('shards') + 1 = getvariable('shard'), true)
