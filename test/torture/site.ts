import { DatabaseSync } from '@photostructure/sqlite';
import { cp, mkdir, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { addDays, day } from '../../src/day.js';
import { SANDBOX } from '../../src/sandbox/state.js';
import { startSandbox } from '../sandbox/faulty-sandbox.js';
import { Clock } from './clock.js';
import { runCommand } from './command.js';
import { type Plan, RECIPIENTS, type Settings } from './plan.js';
import type { SiteKey } from './truth.js';

/** The start of every trial: a Wednesday, a few hours into the day. */
export const START = new Date('2026-11-18T05:00:00Z');
const TODAY = day('2026-11-18');

/** More than the 250 rows of one page, so that rows can move between two pages. */
const PAGES = 330;
const GROWN = { seed: 1, firstDay: addDays(TODAY, -44), pages: PAGES };

/** The site of a trial. Grown trials share theirs: its history is loaded once and copied. */
export const siteOf = ({ site, seed }: Plan): SiteKey =>
  site === 'grown' ? GROWN : { seed, firstDay: addDays(TODAY, -9), pages: seed % 2 === 0 ? PAGES : 40 };

const [ADA, BOB, OPS] = RECIPIENTS;

const configOf = (baseUrl: string, settings: Settings): string => `baseUrl: ${baseUrl}
projects: [{ id: ${SANDBOX.projectId}, name: Acme Docs }]
history:
  requestsPerHour: ${settings.requestsPerHour}
  settleDays: ${settings.settleDays}
improve:
  mode: ${settings.mode}
  maxOpenPullRequests: 100
  maxJobsPerWeek: ${settings.maxJobs}
  minWeeklyViews: 0
reports: { weekly: { to: [${ADA}, ${BOB}] }, improve: { to: [${ADA}] } }
alerts: { to: [${OPS}] }
mail: { from: Readership <readership@example.com> }
`;

/** Writes the workspace of a trial, with the data of `grown`, if given. */
export async function makeWorkspace(directory: string, baseUrl: string, settings: Settings, grown?: string) {
  await mkdir(join(directory, 'data'), { recursive: true });
  await writeFile(join(directory, 'readership.yaml'), configOf(baseUrl, settings));
  if (grown === undefined) return;
  await cp(join(grown, 'data'), join(directory, 'data'), { recursive: true });
  // It is no copy: this is where it sends from.
  const state = new DatabaseSync(join(directory, 'data', 'state.db'));
  state.prepare('UPDATE workspace SET path = ?').run(await realpath(join(directory, 'data')));
  state.close();
}

/** Loads the history that grown trials start with, using the command itself; returns its directory. */
export async function growSite(program: string, preload: string): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'readership-torture-grown-'));
  const clock = new Clock(START);
  const sandbox = await startSandbox({ now: clock.now, ...GROWN });
  const settings = { requestsPerHour: 'unlimited', settleDays: 3 } as const;
  await makeWorkspace(directory, sandbox.baseUrl, { ...settings, mode: 'plan', maxJobs: 1 });
  const task = { program, preload, directory, env: { READERSHIP_API_KEY: sandbox.apiKey } };
  const { code, output } = await runCommand(task, ['export'], { clock: clock.settingBehind(0), kill: null });
  await sandbox.close();
  if (code !== 0) throw new Error(`the site could not be grown:\n${output}`);
  await rm(join(directory, 'readership.yaml'));
  return directory;
}
