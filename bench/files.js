/**
 * DuckDB reading the responses of an export from files, without any requests, which is the least that storing their rows
 * takes. Its arguments are the directory of the files, and one for its database.
 */
import { DuckDBInstance } from '@duckdb/node-api';
import { join } from 'node:path';
import process from 'node:process';

const [files = '', directory = ''] = process.argv.slice(2);
const instance = await DuckDBInstance.create(join(directory, 'views.duckdb'));
const connection = await instance.connect();
await connection.run(
  `CREATE TABLE page_views AS
  SELECT day, view.path, view.human, view.ai, view.total
  FROM (
    SELECT parse_filename(filename)[:10]::DATE AS day, unnest(views) AS view
    FROM read_json('${files}/*.json', filename = true, columns = {
      views: 'STRUCT(path VARCHAR, human BIGINT, ai BIGINT, total BIGINT)[]'
    })
  )`,
);
connection.closeSync();
instance.closeSync();
