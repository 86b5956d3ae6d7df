import { DuckDBInstance, type DuckDBConnection } from '@duckdb/node-api';

/** Opens a database file as other programs do, a new one in memory by default, and closes it after the work. */
export async function inDuckDb<Result>(
  work: (connection: DuckDBConnection) => Promise<Result>,
  file = ':memory:',
  options: Readonly<Record<string, string>> = {},
): Promise<Result> {
  const instance = await DuckDBInstance.create(file, options);
  const connection = await instance.connect();
  try {
    return await work(connection);
  } finally {
    connection.closeSync();
    instance.closeSync();
  }
}

/** The answer to the last of these statements, as rows of plain values. */
export const answerOf = (file: string, ...statements: readonly string[]) =>
  inDuckDb(
    async (connection) => (await connection.runAndReadAll(statements.join('; '))).getRowObjectsJson(),
    file,
  );
