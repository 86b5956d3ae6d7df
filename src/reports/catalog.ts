import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { ConfigurationError } from '../errors.js';
import { parseReportFile, type ReportFile } from './definition.js';
import { faultOf } from './fault.js';
import { ignoreMissing } from '../files.js';
import { isBuiltIn, searchedDirs } from '../places.js';

/** A report as its folder defines it, with its SQL and pictures read. */
export interface ReportDefinition extends Omit<ReportFile, 'queries' | 'pictures'> {
  readonly name: string;
  readonly folder: string;
  /** Whether it comes with Readership, or is the workspace's own. */
  readonly isBuiltIn: boolean;
  readonly queries: readonly Query[];
  readonly pictures: readonly Picture[];
}

export interface Query {
  readonly name: string;
  readonly file: string;
  readonly sql: string;
  readonly rows: 'one' | 'many';
}

export interface Picture {
  readonly name: string;
  readonly file: string;
  readonly query: string;
  readonly title: string;
  readonly widths: readonly number[];
  readonly mail?: { readonly width: number; readonly alt: string } | undefined;
  readonly spec: Readonly<Record<string, unknown>>;
}

/** Every report there is, by name. One in the workspace replaces the built-in one of the same name. */
export async function listReports({ workspaceDir }: { workspaceDir?: string | undefined } = {}): Promise<
  ReportDefinition[]
> {
  const folders = await reportFolders(workspaceDir);
  const read = await Promise.all([...folders].map(([name, folder]) => readReport(name, folder)));
  const faults = read.flatMap((report) => ('faults' in report ? report.faults : []));
  if (faults.length > 0) throw faulty(faults);
  return read.flatMap((report) => ('faults' in report ? [] : [report]));
}

/** One report by its name. The faults of others do not matter. */
export async function findReport(name: string, workspaceDir: string | undefined): Promise<ReportDefinition> {
  const folders = await reportFolders(workspaceDir);
  const folder = folders.get(name);
  if (folder === undefined) {
    throw new ConfigurationError(`There is no report “${name}”. Reports: ${[...folders.keys()].join(', ')}`);
  }
  const report = await readReport(name, folder);
  if ('faults' in report) throw faulty(report.faults);
  return report;
}

async function reportFolders(workspaceDir: string | undefined): Promise<Map<string, string>> {
  const found = new Map<string, string>();
  for (const dir of searchedDirs(workspaceDir)) {
    for (const name of await foldersIn(join(dir, 'reports'))) {
      if (!found.has(name)) found.set(name, join(dir, 'reports', name));
    }
  }
  return new Map([...found].sort(([a], [b]) => (a < b ? -1 : 1)));
}

async function foldersIn(dir: string): Promise<string[]> {
  const entries = await readdir(dir, { withFileTypes: true }).catch(ignoreMissing);
  return (entries ?? []).filter((entry) => entry.isDirectory()).map((entry) => entry.name);
}

async function readReport(name: string, folder: string): Promise<ReportDefinition | { faults: string[] }> {
  const file = join(folder, 'report.yaml');
  const text = await readFile(file, 'utf8').catch(ignoreMissing);
  if (text === undefined) return { faults: [`${file}: missing`] };
  const parsed = parseReportFile(text);
  if ('faults' in parsed) return { faults: parsed.faults.map((fault) => `${file}: ${fault}`) };

  const faults: string[] = [];
  const queries: Query[] = [];
  for (const [query, rows] of Object.entries(parsed.report.queries)) {
    const file = join(folder, `${query}.sql`);
    const sql = await readFile(file, 'utf8').catch(ignoreMissing);
    if (sql === undefined) faults.push(`${file}: missing, yet report.yaml names the query ${query}`);
    else queries.push({ name: query, file, sql, rows });
  }
  const pictures: Picture[] = [];
  for (const [picture, settings] of Object.entries(parsed.report.pictures)) {
    const file = join(folder, `${picture}.vl.json`);
    try {
      const spec = z.record(z.string(), z.unknown()).parse(JSON.parse(await readFile(file, 'utf8')));
      pictures.push({ ...settings, name: picture, file, spec });
    } catch (error) {
      faults.push(`${file}: ${faultOf(error)}`);
    }
  }
  return faults.length > 0
    ? { faults }
    : { ...parsed.report, name, folder, isBuiltIn: isBuiltIn(folder), queries, pictures };
}

const faulty = (faults: readonly string[]): ConfigurationError =>
  new ConfigurationError(
    faults.length === 1
      ? `A report cannot be used: ${faults.join('')}`
      : `Reports cannot be used, ${faults.length} faults:\n${faults.map((fault) => `  ${fault}`).join('\n')}`,
  );
