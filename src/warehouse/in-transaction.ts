import type { DuckDBConnection } from '@duckdb/node-api';

/** Runs `work` in a transaction: committed when it resolves, rolled back when it throws, or when the commit fails. */
export async function inTransaction<Result>(
  connection: DuckDBConnection,
  work: () => Promise<Result>,
): Promise<Result> {
  await connection.run('BEGIN');
  const result = await work().catch(async (error: unknown) => {
    // After what no database gets over, this fails as well, and says less.
    await connection.run('ROLLBACK').catch(() => undefined);
    throw error;
  });
  await connection.run('COMMIT');
  return result;
}
