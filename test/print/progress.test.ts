import { PassThrough } from 'node:stream';
import { stripVTControlCharacters } from 'node:util';
import { expect, it } from 'vitest';
import { addDays, day } from '../../src/day.js';
import { RefusedError, VIEWS_OPERATION } from '../../src/api/errors.js';
import { settingsSchema } from '../../src/config/schema.js';
import { logging, openLog } from '../../src/print/log.js';
import { ExportProgress } from '../../src/print/progress.js';
import { loadScreen, Output } from '../../src/terminal/output.js';
import {
  callCleanly,
  daysAgo,
  endedWith,
  env,
  platformOf,
  platformWorkspace,
} from '../commands/workspace.js';
import { textOf } from '../streams.js';

const FIRST = day('2026-11-02');

it('days that are not loaded for the same reason take two lines, another one line', () => {
  const [out, err] = [new PassThrough(), new PassThrough()];
  const progress = new ExportProgress(new Output(out, err, false));
  const fail = (at: number, words: (on: string) => string) => {
    const on = addDays(FIRST, at);
    progress.advance({ day: on, outcome: 'failed', error: new Error(words(on)) });
  };
  for (const at of [9, 8, 7, 4]) fail(at, (on) => `400 for dateFrom=${on}`);
  fail(3, () => 'no page at all');
  fail(2, (on) => `400 for dateFrom=${on}`);
  progress.end();
  progress.end();
  expect(textOf(err).trim().split('\n')).toEqual([
    '2026-11-11 was not loaded: 400 for dateFrom=2026-11-11',
    '2026-11-05 was not loaded: no page at all',
    '4 more days, 2026-11-04 to 2026-11-10, were not loaded for the same reason as 2026-11-11',
  ]);
});

it('the log calls a day failed, but one that the platform refused only refused: it may be older than what it keeps', async () => {
  const out = new PassThrough();
  const log = logging(await openLog(new Output(out, out, false)));
  const project = settingsSchema.parse({ baseUrl: 'http://127.0.0.1', projects: [{ id: 'prj_1' }] })
    .projects[0];
  const operation = { name: VIEWS_OPERATION, method: 'GET' as const, url: 'http://127.0.0.1/' };
  for (const error of [new Error('cut off'), new RefusedError(operation, 403, 'your plan keeps 90 days')])
    if (project !== undefined) log.onDay?.(project, { day: FIRST, outcome: 'failed', error });
  expect(textOf(out)).toMatch(/"level":40,.+"a day failed".+"level":30,.+"a day was refused"/s);
});

it('a wait of many requests for the same minute is noted and logged once', async () => {
  const [out, err] = [new PassThrough(), new PassThrough()];
  const listeners = [
    new ExportProgress(new Output(out, err, false)).listener,
    logging(await openLog(new Output(out, err, false))),
  ];
  for (const { onWait } of listeners)
    for (const seconds of [10, 10.2, 10.4, 75])
      onWait?.(
        new Date(Date.UTC(2026, 10, 18, 6, 0, 0) + seconds * 1_000),
        'The platform refused a request.',
      );
  expect(textOf(err).trim().split('\n')).toEqual([
    'The platform refused a request. Waiting until Nov 18, 2026 at 06:01 UTC.',
    'The platform refused a request. Waiting until Nov 18, 2026 at 06:02 UTC.',
  ]);
  expect(textOf(out).match(/"until":"[^"]+"/g)).toHaveLength(2);
});

it('on a terminal, the bar is as long as the line has room for', async () => {
  const err = Object.assign(new PassThrough(), { isTTY: true, columns: 60 });
  const progress = new ExportProgress(new Output(err, err, false, await loadScreen()));
  progress.advance({ day: FIRST, outcome: 'failed', error: new Error('cut off') });
  expect(stripVTControlCharacters(textOf(err))).toMatch(/^ {2}█{8,15} {2}1\/1 days .+ left$/m);
});

it('the requests of an export are counted by project', () => {
  const progress = new ExportProgress(new Output(new PassThrough(), new PassThrough(), false));
  const { onRequest } = progress.listener;
  const of = { method: 'GET' as const, url: 'http://127.0.0.1/' };
  for (const project of ['prj_1', 'prj_2', 'prj_2']) onRequest?.({ name: VIEWS_OPERATION, ...of }, project);
  onRequest?.({ name: 'create an agent job', ...of }, 'prj_1');
  expect([...progress.cost.requests]).toEqual([
    ['prj_1', 1],
    ['prj_2', 2],
  ]);
});

it('what is left of days of unknown size is the least number of requests', async () => {
  const platform = await platformOf(1, 900);
  const settings = `history: { start: ${daysAgo(1)}, requestsPerHour: 2 }\n`;
  const cwd = await platformWorkspace(platform, settings);
  const { stdout } = endedWith(75, await callCleanly(['export'], { cwd, env }));
  expect(stdout).toMatch(/^ {2}1 day left, at least 1 request; resumes on .+ UTC$/m);
});
