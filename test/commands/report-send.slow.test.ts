import { Command } from 'commander';
import { on } from 'node:events';
import { cp, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { watchReport } from '../../src/commands/report-render.js';
import { report as declareReport } from '../../src/commands/report.js';
import { sendReport } from '../../src/commands/report-emails.js';
import { day } from '../../src/day.js';
import { type Delivery, storeDelivery } from '../../src/state/emails.js';
import { adopt } from '../../src/state/witness.js';
import { placeOf } from '../../src/state/workspace.js';
import { type MailServer, startMailServer } from '../mail/mail-server.js';
import { loadDays } from '../mail/site.js';
import { openTestState } from '../open-state.js';
import { closeNow, inHistory, newStore, rowsOf } from '../open-history.js';
import { runtimeIn } from '../run-cli.js';
import { useSmallReports } from '../small-reports.js';
import { textOf } from '../streams.js';
import { tempDir } from '../temp-dir.js';

const CONFIGURATION = `
baseUrl: https://platform.example.com
projects: [{ id: prj_1, name: Acme Docs }]
mail: { from: Readership <readership@example.com> }
reports: { weekly: { to: [docs@example.com, lead@example.com] } }
`;

let server: MailServer;
let directory: string;

/** A data directory with two weeks of views. */
let twoWeeks: string;
beforeAll(async () => {
  const history = await newStore();
  await loadDays(history, day('2026-11-02'), day('2026-11-15'));
  twoWeeks = dirname(history.path);
  await closeNow(history);
});

beforeEach(async () => {
  server = await startMailServer();
  directory = await tempDir();
  await writeFile(join(directory, 'readership.yaml'), CONFIGURATION);
  const dataDir = join(directory, 'data');
  await cp(twoWeeks, dataDir, { recursive: true });
  // The copy is the workspace that sends.
  const { state, worker, close } = await openTestState(dataDir);
  await adopt({ state, worker, witness: undefined }, await placeOf(dataDir));
  await close();
});

const runtime = (environment: Record<string, string>) =>
  runtimeIn(directory, { environment, now: () => new Date('2026-11-16T09:00:00Z') });

async function send(options: Parameters<typeof sendReport>[1], url = `smtp://127.0.0.1:${server.port}`) {
  const { out, err, runtime: its } = runtime({ READERSHIP_SMTP_URL: url });
  const exitCode = await sendReport('weekly', options, its);
  return { exitCode, lines: textOf(out).trimEnd().split('\n'), notes: textOf(err) };
}

/** Runs `readership report <args>`. */
async function report(...args: string[]) {
  const { out, err, runtime: its } = runtime({});
  const program = new Command().exitOverride();
  let exitCode: unknown;
  declareReport(program, async (work) => {
    exitCode = await work(its);
  });
  await program.parseAsync(['report', ...args], { from: 'user' });
  return { exitCode, lines: textOf(out), notes: textOf(err) };
}

/** Stores that emails about the last week to both recipients may have arrived, and others like them. */
async function storeUnknown(...others: Partial<Delivery>[]): Promise<void> {
  const { state, close } = await openTestState(join(directory, 'data'));
  const unknown: Delivery = {
    report: 'weekly',
    project: 'prj_1',
    period: '2026-W46',
    recipient: 'docs@example.com',
    state: 'unknown',
    via: 'smtp',
    message_id: '<1@example.com>',
    attempt: 0,
    attempts: 1,
    tried_at: new Date('2026-11-16T09:00:00Z'),
    settled_at: null,
    next_attempt_at: null,
    note: null,
    days_covered: 7,
    human: 1,
    ai: 1,
  };
  await state.transaction(() => {
    for (const [index, other] of [{}, { recipient: 'lead@example.com' }, ...others].entries())
      storeDelivery(state, { ...unknown, attempt: 100 + index, ...other });
  });
  await close();
}

const refused = (...args: string[]) => expect(report(...args)).rejects;

const copies = (recipient: string) => server.accepted.get(recipient)?.length ?? 0;

describe('readership report send weekly', () => {
  beforeEach(() => useSmallReports(directory));

  it('emails it to recipients who have not received it, and says who did and when', async () => {
    const first = await send({});
    expect(first).toEqual({
      exitCode: 0,
      lines: [
        'weekly 2026-W46 to docs@example.com: sent (250 queued)',
        'weekly 2026-W46 to lead@example.com: sent (250 queued)',
      ],
      notes: '',
    });
    const second = await send({});
    expect(second.lines).toEqual([
      'weekly 2026-W46 to docs@example.com: already sent on Nov 16, 2026 at 09:00 UTC',
      'weekly 2026-W46 to lead@example.com: already sent on Nov 16, 2026 at 09:00 UTC',
    ]);
    expect([copies('docs@example.com'), copies('lead@example.com')]).toEqual([1, 1]);
    expect((await send({ period: '2026-W47' })).notes).toContain('has not ended');
    // SQL sees them.
    const query = 'SELECT recipient, state, tried_at FROM emails ORDER BY recipient';
    expect(
      await inHistory(join(directory, 'data/history.duckdb'), (history) => rowsOf(history, query)),
    ).toEqual([
      { recipient: 'docs@example.com', state: 'sent', tried_at: '2026-11-16T09:00:00.000Z' },
      { recipient: 'lead@example.com', state: 'sent', tried_at: '2026-11-16T09:00:00.000Z' },
    ]);
  });

  it('says who may have received it and how to settle it; --force sends it again to that recipient only', async () => {
    server.behaviors.set('docs@example.com', [{ on: 'data', do: 'drop-lost' }]);
    const first = await send({});
    expect(first.exitCode).toBe(1);
    const settle =
      'readership report resolve weekly --period 2026-W46 --project prj_1 --delivered docs@example.com, or --not-delivered docs@example.com';
    expect(first.lines[0]).toContain('may or may not have arrived');
    expect(first.lines[0]).toContain(settle);
    const second = await send({});
    expect(second.exitCode).toBe(1);
    expect(second.lines[0]).toContain('may or may not have arrived');
    expect((await send({ to: 'lead@example.com' })).exitCode).toBe(0);
    const forced = await send({ force: true, to: 'docs@example.com', period: '2026-W46' });
    expect(forced.lines).toEqual(['weekly 2026-W46 to docs@example.com: sent (250 queued)']);
    expect([copies('docs@example.com'), copies('lead@example.com')]).toEqual([1, 1]);
  });

  it('is settled by a person: as delivered, it stays so; as not delivered, it is sent again; otherwise a message lists what is stored', async () => {
    const resolve = (...args: string[]) => report('resolve', 'weekly', ...args);
    const unsettled = (...args: string[]) => expect(resolve(...args)).rejects;
    await storeUnknown();
    const never = report('resolve', 'improve', '--delivered', 'docs@example.com');
    await expect(never).rejects.toThrow('No email of improve was ever sent');
    // It waits for no command that holds the database.
    const { close } = await openTestState(join(directory, 'data'));
    for (const [args, words] of [
      [['--delivered', 'eve@example.com'], "--period '2026-W46' --project prj_1: docs@example.com, unknown"],
      [['--delivered', 'docs@example.com', '--period', '2026-W45'], 'Specify which email'],
      [['--delivered', 'a@example.com', '--not-delivered', 'a@example.com'], 'cannot be used with'],
      [[], 'Say whether it arrived'],
    ] as const)
      await unsettled(...args).toThrow(words);
    const settled = await resolve('--period', '2026-W46', '--delivered', 'Docs@Example.com');
    expect(settled.lines).toContain('sent (delivered, confirmed by a person)');
    const missing = await resolve('--not-delivered', 'lead@example.com');
    expect(missing.lines).toMatch(/yet \(not delivered, confirmed by a person\); retried by the next run$/m);
    const done = 'has an unknown outcome, so there is nothing to resolve';
    await unsettled('--delivered', 'docs@example.com').toThrow(done);
    await close();
    await send({});
    expect([copies('docs@example.com'), copies('lead@example.com')]).toEqual([0, 1]);
  });

  it('is settled by a day in its period, and an alert by its name as listed', async () => {
    const alert = 'export 2026-11-16T03:00:00.000Z';
    await storeUnknown({ report: 'alert', period: alert });
    const settle = async (name: string, period: string, recipient = 'docs@example.com') =>
      (await report('resolve', name, '--period', period, '--delivered', recipient)).lines;
    for (const day of ['2026-11-08', '2026-11-16', '2026-11'])
      await expect(settle('weekly', day), day).rejects.toThrow('Specify which email');
    const confirmed = (recipient: string) => `to ${recipient}: sent (delivered, confirmed by a person)\n`;
    // The first and the last day of its week.
    for (const [day, recipient] of [
      ['2026-11-09', 'docs@example.com'],
      ['2026-11-15', 'lead@example.com'],
    ] as const)
      expect(await settle('weekly', day, recipient)).toBe(`weekly 2026-W46 ${confirmed(recipient)}`);
    expect(await settle('alert', alert)).toBe(`alert ${alert} ${confirmed('docs@example.com')}`);
  });

  it('exits 75 after a temporary refusal, and tries at once when run again', async () => {
    server.behaviors.set('docs@example.com', [{ on: 'rcpt', do: 451 }]);
    const first = await send({});
    expect(first.exitCode).toBe(75);
    expect(first.lines[0]).toMatch(/not delivered yet .*451.*; retried from Nov 16, 2026 at 09:05 UTC/);
    expect((await send({})).lines[0]).toContain('sent (250 queued)');
  });

  it('writes emails to the outbox if there is no mail server, shows where, and sends them once there is one', async () => {
    const { lines } = await send({}, '');
    const [, file = ''] =
      /^weekly 2026-W46 to docs@example\.com: written to (data\/outbox\/weekly-2026-W46-docs@example\.com-\w+\.eml), because there is no mail server$/.exec(
        lines[0] ?? '',
      ) ?? [];
    expect((await readFile(join(directory, file))).length).toBeGreaterThan(1000);
    expect((await send({}, '')).lines).toEqual(lines);
    expect(copies('docs@example.com')).toBe(0);
    expect((await send({})).lines[0]).toBe('weekly 2026-W46 to docs@example.com: sent (250 queued)');
    expect(copies('docs@example.com')).toBe(1);
  });

  it('sends one email to an address that is not configured, and says so', async () => {
    const { lines, notes } = await send({ to: 'me@example.com' });
    expect(lines).toEqual([expect.stringMatching(/^weekly 2026-W46 to me@example\.com: sent/)]);
    expect(notes).toContain('me@example.com is not in reports.weekly.to, so it gets only this email.');
    expect([copies('me@example.com'), copies('docs@example.com')]).toEqual([1, 0]);
    expect((await send({ to: 'me@example.com' })).lines[0]).toContain('already sent');
    const { runtime: its } = runtime({ READERSHIP_SMTP_URL: `smtp://127.0.0.1:${server.port}` });
    expect(await sendReport('improve', { to: 'me@example.com' }, its)).toBe(0);
    expect(copies('me@example.com')).toBe(2);
  });

  it('rejects what is no address and no channel, and a report without recipients', async () => {
    for (const to of ['eve', 'eve@', '@example.com'])
      await expect(send({ to })).rejects.toThrow(
        `${to} is neither an email address nor a channel in reports.weekly.to. Its recipients: docs@example.com, lead@example.com.`,
      );
    const { runtime: its } = runtime({});
    await expect(sendReport('improve', {}, its)).rejects.toThrow('reports.improve.to, or name one address');
    await expect(sendReport('sections', {}, its)).rejects.toThrow('There is no report “sections”');
  });
});

describe('readership report weekly --output', () => {
  it('writes the format that is given or named by the file, and nothing else; or says why not', async () => {
    for (const [file, options, beginning] of [
      ['weekly.out', ['--format', 'text'], /^Acme Docs/],
      ['weekly.json', [], /^\{\n {2}"report": "weekly"/],
      ['weekly.HTML', [], /^<!doctype html>/],
    ] as const) {
      const { lines } = await report('weekly', ...options, '--output', file);
      expect(await readFile(join(directory, file), 'utf8')).toMatch(beginning);
      expect(lines).toBe('');
    }
    expect(await readdir(join(directory, 'data'))).not.toContain('reports');
    await refused('weekly', '--output', 'weekly.pdf').toThrow(/weekly\.pdf: .+ For a PDF, print/);
    const unwritable = 'Cannot write the report to missing/weekly.txt';
    await refused('weekly', '--format', 'text', '--output', 'missing/weekly.txt').toThrow(unwritable);
  });

  it('is rejected where it would have no effect, as is any other option', async () => {
    const text = ['weekly', '--format', 'text'];
    await refused(...text, '--to', 'a@example.com').toThrow("unknown option '--to'");
    await refused('weekly', '--format', 'eml').toThrow('Allowed choices are html, text, json');
    await refused(...text, '--open').toThrow('--open has no effect with --format text');
    await refused('--period', '2026-W46').toThrow('--period has no effect without a report');
    await refused('send', 'weekly', '--output', 'a.html').toThrow("unknown option '--output'");
  });
});

it('readership report lists the reports that work, and says what is wrong with the others', async () => {
  expect(await report()).toEqual(await report('list'));
  expect(await report()).toMatchObject({
    exitCode: 0,
    lines: expect.stringMatching(/^improve .*\nweekly /) as string,
  });
  await mkdir(join(directory, 'reports/broken'), { recursive: true });
  await writeFile(join(directory, 'reports/broken/report.yaml'), 'title: [');
  const { exitCode, lines, notes } = await report();
  expect(exitCode).toBe(2);
  expect(lines).toMatch(/^improve .*\nweekly .*\n$/);
  expect(notes).toMatch(/^The report broken cannot be used: .*broken\/report\.yaml:1 /);
});

it('readership report new writes a report that works unchanged, and replaces nothing', async () => {
  const { lines, notes } = await report('new', 'busy_pages');
  expect(lines).toBe('reports/busy_pages/busy_pages.sql\nreports/busy_pages/report.yaml\n');
  expect(notes).toContain('readership report busy_pages --watch --open');
  expect((await report('busy_pages', '--format', 'text')).lines).toMatch(
    /\nBusy pages\n[^]*\n\/page-1: Human 693 · AI 343\n/,
  );
  for (const taken of ['busy_pages', 'weekly'])
    await refused('new', taken).toThrow(`reports/${taken} already exists`);
  for (const name of ['../x', 'send', 'timezone'])
    await refused('new', name).toThrow('is not a valid report name');
});

it('readership report --watch renders again on each change, and continues after an error', async () => {
  await report('new', 'mine');
  const { err, runtime: its } = runtime({});
  const stop = new AbortController();
  const noted = async (words: string) => {
    for await (const [note] of on(err, 'data') as AsyncIterable<[Buffer]>)
      if (String(note).includes(words)) return;
  };
  const watching = noted('Watching');
  const ended = watchReport('mine', { format: 'html' }, { ...its, signal: stop.signal });
  await watching;
  const broken = noted('reports/mine/mine.sql:1  ');
  await writeFile(join(directory, 'reports/mine/mine.sql'), 'SELECT nothing');
  await broken;
  const repaired = noted('Acme Docs, Nov 9 – 15, 2026: Mine');
  await writeFile(join(directory, 'reports/mine/mine.sql'), "SELECT '/a' AS path, 12345 AS human, 1 AS ai");
  await repaired;
  stop.abort();
  expect(await ended).toBe(0);
  const page = join(directory, 'data/reports/prj_1/mine-2026-W46.html');
  expect(await readFile(page, 'utf8')).toContain('12,345');
});
