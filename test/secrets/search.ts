import type { DuckDBConnection } from '@duckdb/node-api';
import { cp, readdir, readFile } from 'node:fs/promises';
import { basename, join, relative } from 'node:path';
import PostalMime from 'postal-mime';
import { literal } from '../../src/history/duckdb.js';
import { inDuckDb } from '../duckdb.js';
import type { CliResult } from '../run-cli.js';
import { tempDir } from '../temp-dir.js';
import { tracesIn } from './marks.js';

/** The user's own files: one contains the secrets, the other the address that is pinged. */
const CONFIGURED = new Set(['.env', 'readership.yaml']);

const TABLES = "SELECT schema_name || '.' || table_name FROM duckdb_tables() WHERE NOT temporary";

/** The traces of secrets, each with its place: in what a command wrote, or in a file that it left. */
export async function tracesLeft(
  directory: string,
  { stdout, stderr }: Pick<CliResult, 'stdout' | 'stderr'>,
): Promise<string[]> {
  const written = [...placed('standard output', stdout), ...placed('standard error', stderr)];
  return [...written, ...(await tracesInFiles(directory))];
}

async function tracesInFiles(directory: string): Promise<string[]> {
  const found: string[] = [];
  const parquetFiles: [string, string][] = [];
  for (const entry of await readdir(directory, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    const name = relative(directory, path);
    found.push(...placed(`the name ${name}`, name));
    if (!entry.isFile() || CONFIGURED.has(name)) continue;
    found.push(...placed(name, await readFile(path)));
    if (name.endsWith('.eml')) found.push(...(await tracesInMail(name, await readFile(path))));
    if (name.endsWith('.duckdb')) found.push(...(await tracesInDatabase(name, path)));
    if (name.endsWith('.parquet')) parquetFiles.push([name, path]);
  }
  return [...found, ...(await tracesInParquet(parquetFiles))];
}

const placed = (place: string, content: string | Buffer): string[] =>
  tracesIn(content).map((trace) => `${place}: ${trace}`);

/** An email as its reader sees it: its text is encoded in transit. */
export async function tracesInMail(name: string, bytes: Buffer): Promise<string[]> {
  const { attachments, ...mail } = await PostalMime.parse(bytes);
  const names = attachments.map(({ filename, contentId }) => [filename, contentId]);
  const written = [mail.subject, mail.text, mail.html, JSON.stringify({ mail, names })];
  return [...placed(name, bytes), ...written.flatMap((part) => placed(`${name}, decoded`, part ?? ''))];
}

/** Every cell: stored data is compressed, so searching only the bytes proves nothing. */
async function tracesInDatabase(name: string, path: string): Promise<string[]> {
  const copy = join(await tempDir(), basename(path));
  await cp(path, copy);
  await cp(`${path}.wal`, `${copy}.wal`).catch(() => undefined);
  return inDuckDb(async (connection) => {
    const found: string[] = [];
    const tables = await rowsOf(connection, TABLES);
    for (const table of tables.flat().map(String))
      found.push(...placed(`${name}, ${table}`, JSON.stringify(await rowsOf(connection, `FROM ${table}`))));
    return found;
  }, copy);
}

/** Of pairs of a name and a path. */
const tracesInParquet = (files: readonly (readonly [string, string])[]): Promise<string[]> =>
  inDuckDb(async (connection) => {
    const found: string[] = [];
    for (const [name, path] of files) {
      const rows = await rowsOf(connection, `FROM read_parquet(${literal(path)})`);
      found.push(...placed(name, JSON.stringify(rows)));
    }
    return found;
  });

const rowsOf = async (connection: DuckDBConnection, sql: string) =>
  (await connection.runAndReadAll(sql)).getRowsJson();
