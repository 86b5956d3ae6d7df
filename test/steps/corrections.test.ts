import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { openChannel } from '../../src/mail/channel.js';
import { readDeliveries } from '../../src/mail/ledger.js';
import { addDays, day } from '../../src/day.js';
import { ElsewhereError } from '../../src/effects/place.js';
import { differenceOf, type Said } from '../../src/reports/correction.js';
import { isOutdated } from '../../src/steps/corrections.js';
import { reportStep } from '../../src/steps/report.js';
import { loadDays, mailSite } from '../mail/site.js';
import { execute } from '../open-warehouse.js';
import { serve } from '../serve.js';
import { tempDir } from '../temp-dir.js';
import { stepContext } from './step-context.js';

const LEAD = 'lead@example.com';
const PART = 'part@example.com';
const CHAT = { kind: 'slack', urlEnv: 'CHAT' } as const;
const HOOK = { kind: 'webhook', urlEnv: 'CHAT', secretEnv: 'SECRET' } as const;
const SECRET = `whsec_${Buffer.alloc(24, 1).toString('base64')}`;
const DIGEST = { weekly: [{ to: [LEAD], digest: true }] };

/** A report that may be about a part of a site. */
const VIEWS = {
  'report.yaml': 'title: Views\nqueries: { views: one }',
  'views.sql': `
    SELECT sum(human)::INTEGER AS read FROM page_views
    WHERE project = $project AND day BETWEEN $from AND $to AND path GLOB $pages`,
};

/** Report steps over a history that the test changes between them; the weekly goes to an address and a channel. */
async function setUp(reports: object = { weekly: { to: [LEAD, 'chat', 'hook'] } }, others: object[] = []) {
  const { server, directory: workspaceDir, warehouse, journal, transport, mailsTo } = await mailSite();
  const chat = await serve((_, response) => response.end('ok'));
  const reportsDir = await tempDir();
  const folder = join(workspaceDir, 'reports/views');
  await mkdir(folder, { recursive: true });
  for (const [name, text] of Object.entries(VIEWS)) await writeFile(join(folder, name), text);
  const run = async (time: string, elsewhere?: ElsewhereError) => {
    const context = stepContext(warehouse, {
      journal,
      elsewhere,
      reportsDir,
      workspaceDir,
      now: () => new Date(time),
      settings: {
        projects: [{ id: 'prj_1', name: 'Acme Docs' }, ...others],
        mail: { from: 'docs@example.com' },
        channels: { chat: CHAT, hook: HOOK },
        reports,
      },
      channels: new Map([
        ['chat', openChannel(CHAT, { CHAT: `${chat.baseUrl}/chat` })],
        ['hook', openChannel(HOOK, { CHAT: `${chat.baseUrl}/hook`, SECRET })],
      ]),
      transport,
    });
    const { error, detail } = await reportStep(context);
    if (error !== undefined) throw error as Error;
    return detail.deliveries.map(({ period, recipient }) => `${period} to ${recipient}`).sort();
  };
  const change = (sql: string) => execute(warehouse, sql);
  /** Changes the human views of a day, as a later load does. */
  const restate = async (date: string, more: number, at: string) => {
    await change(`
      INSERT INTO restatements
      SELECT project, day, TIMESTAMP '${at}', human, human + ${more}, ai, ai, total, total + ${more}, 1
      FROM day_loads WHERE day = DATE '${date}'`);
    await change(
      `UPDATE day_loads SET human = human + ${more}, total = total + ${more} WHERE day = DATE '${date}'`,
    );
  };
  const pageOf = (name: string) => readFile(join(reportsDir, 'prj_1', `${name}.html`), 'utf8');
  const mails = (to = LEAD) => mailsTo(to);
  return { warehouse, server, chat, run, mails, change, restate, pageOf };
}

it('a number is as sent only if its change is too, unless that was unknown', () => {
  const said = (changeText: string, value = '1', statements: Said['statements'] = []) => ({
    ...{ project: 'prj_1', statements, human: 1, ai: 0, missing: null },
    numbers: [{ name: 'Human views', value, changeText }],
  });
  const isSame = (was: string) => differenceOf(said(was), said('+9%'), []).numbers[0]?.isSame;
  expect(['+9%', '+5%', ''].map(isSame)).toEqual([true, false, true]);
  expect(differenceOf(said('', '–'), said('', '0.0%'), []).numbers[0]?.was).toBeNull();
  // More pull requests wait now, which corrects nothing.
  const review = (text: string, then: string) =>
    said('', '1', [
      { key: 'review', text, isShown: true },
      { key: 'calm', text: then, isShown: false },
    ]);
  const calm = 'A calm week.';
  const [one, four] = [review('One waits.', calm), review('Four wait.', calm)];
  expect(differenceOf(one, four, [])).toMatchObject({ headline: calm, headlineWas: null, untrue: [] });
  const read = said('', '1', [{ key: 'calm', text: calm, isShown: true }]);
  expect(differenceOf(read, four, [])).toMatchObject({ headline: calm, headlineWas: null, untrue: [] });
});

it('a cause names the days that were loaded later or changed, or counts many', () => {
  const said = (human: number, missing: Said['missing']) => ({
    ...{ project: 'prj_1', statements: [], numbers: [], ai: 0 },
    ...{ human, missing },
  });
  const causes = (missing: number[], restated: number[]) => {
    const days = Array.from({ length: 28 }, (_, at) => addDays(day('2026-11-01'), at));
    const views = { human: 1, ai: 0, is_final: true };
    const stored = days.map((day, at) => ({ day, ...views, is_restated: restated.includes(at + 1) }));
    const late = days.filter((_, at) => missing.includes(at + 1));
    return differenceOf(said(20, late), said(29, []), stored).causes.map((cause) => cause.split(':')[0]);
  };
  expect(causes([4, 5, 6, 7, 8], [2, 4, 9])).toEqual([
    'Nov 4 – 8, loaded later',
    'Nov 2 and Nov 9, changed by the platform later',
  ]);
  expect(causes([1, 2, 3, 28], [])).toEqual([
    '4 days between Nov 1 and Nov 28, loaded later',
    'Changed by the platform later',
  ]);
});

describe('a report that was sent incomplete', () => {
  it('is followed by one marked correction for each recipient, once all days are final', async () => {
    const { warehouse, server, run, mails, change, chat } = await setUp();
    await loadDays(warehouse, day('2026-10-05'), day('2026-11-13'));
    expect(await run('2026-11-17T04:00:00Z')).toEqual(
      ['chat', 'hook', LEAD].map((recipient) => `2026-W46 to ${recipient}`),
    );
    // As if each had been sent other numbers.
    await change("UPDATE deliveries SET human = 3000 WHERE recipient = 'chat'");
    await loadDays(warehouse, day('2026-11-14'), day('2026-11-15'));
    for (const state of ['provisional', 'inconsistent']) {
      await change(`UPDATE day_loads SET state = '${state}' WHERE day = DATE '2026-11-15'`);
      expect(await run('2026-11-18T04:00:00Z')).toEqual([]);
    }
    await change(`UPDATE day_loads SET state = 'final'`);
    const elsewhere = new ElsewhereError('It sends from web-1.');
    await expect(run('2026-11-19T03:00:00Z', elsewhere)).rejects.toBe(elsewhere);
    server.behaviors.set(LEAD, [{ on: 'rcpt', do: 451 }]);
    await expect(run('2026-11-19T04:00:00Z')).rejects.toThrow(`2026-W46 correction to ${LEAD}: `);
    expect(await run('2026-11-19T05:00:00Z')).toEqual([`2026-W46 correction to ${LEAD}`]);
    for (const later of ['2026-11-19T06:00:00Z', '2026-11-22T04:00:00Z'])
      expect(await run(later)).toEqual([]);

    const [first, correction, ...more] = await mails();
    expect(more).toEqual([]);
    // Eight pages with 99 to 92 views a day.
    expect(first?.text).toContain('3,820');
    expect(correction?.subject).toBe('Correction: Acme Docs, Nov 9 – 15, 2026: 5,348 human views, not 3,820');
    expect(correction?.text).toContain('covered 5 of 7 days. All of them are loaded now.');
    expect(correction?.text).toContain(`
5,348 human views and 2,548 AI views this week.
The report said: “3,820 human views and 1,820 AI views on five of seven days.”

Human views: 5,348 (0%), not 3,820
AI views: 2,548 (0%), not 1,820
AI share: 32.3% (0.0 pts), as sent
Pages read: 8, as sent

Nov 14 – 15, loaded later: +1,528 human views and +728 AI views.
`);
    for (const words of ['3,820 human views and 1,820 AI views on five', 'Nov 14 – 15, loaded later'])
      expect(correction?.html).toContain(words);
    expect(correction?.messageId).not.toBe(first?.messageId);
    // In the thread of the report, and without commands, which recipients cannot run.
    expect([correction?.inReplyTo, correction?.references]).toEqual([first?.messageId, first?.messageId]);
    expect(`${correction?.text ?? ''}${correction?.html ?? ''}`).not.toContain('readership report');
    const seenAt = (path: string) => chat.seen.filter(({ url }) => url.pathname === path);
    const [, toChat, ...again] = seenAt('/chat');
    expect(again).toEqual([]);
    expect(toChat?.body).toContain('5,348 human views, not 3,000');
    expect(toChat?.body).toContain('Human views: 5,348 (0%), not 3,820');
    const [, toHook] = seenAt('/hook');
    const { data } = z.object({ data: z.unknown() }).parse(JSON.parse(toHook?.body ?? ''));
    expect(data).toMatchObject({
      url: null,
      content: {
        why: 'The report sent on Nov 17, 2026 covered 5 of 7 days. All of them are loaded now.',
        said: { days: 5, human: 3820, ai: 1820 },
        now: { days: 7, human: 5348, ai: 2548 },
        parts: [{ name: 'Acme Docs', stake: 2256, pageUrl: null }],
      },
    });
    const deliveries = await readDeliveries(warehouse);
    expect(deliveries.map(({ period, days_covered: days, human }) => [period, days, human])).toEqual([
      ['2026-W46', 5, 3000],
      ['2026-W46', 5, 3820],
      ['2026-W46', 5, 3820],
      ['2026-W46 correction', 7, 5348],
      ['2026-W46 correction', 7, 5348],
      ['2026-W46 correction', 7, 5348],
    ]);
    expect(deliveries.at(-1)?.said).toContain('"value":"5,348"');

    // A day without views.
    await loadDays(warehouse, day('2026-11-16'), day('2026-11-21'));
    await run('2026-11-24T04:00:00Z');
    await change(`
      INSERT INTO day_loads
      SELECT * REPLACE (DATE '2026-11-22' AS day, 0 AS human, 0 AS ai, 0 AS total, 0 AS pages)
      FROM day_loads WHERE day = DATE '2026-11-21'`);
    await run('2026-11-25T04:00:00Z');
    const late = (await mails()).at(-1);
    expect(late?.subject).toMatch(
      /^Correction: Acme .*: all days are loaded, and the numbers are unchanged$/,
    );
    expect(late?.text).toContain('\nNov 22, loaded later: no views.\n');
  });

  it('is not corrected months later, for those who did not get it, or if its contents are unknown', async () => {
    const others = ['refuses@example.com', 'of-010@example.com'];
    const { warehouse, server, run, change, mails, pageOf } = await setUp({
      views: [{ to: [LEAD, ...others] }, { to: [PART, 'of-020@example.com'], where: '/page-1' }],
      // The report on agents is not about views.
      improve: { to: [LEAD] },
    });
    await loadDays(warehouse, day('2026-10-05'), day('2026-11-13'));
    server.behaviors.set('refuses@example.com', [{ on: 'rcpt', do: 550 }]);
    await expect(run('2026-11-17T04:00:00Z')).rejects.toThrow('refuses@example.com: failed');
    await change(
      `UPDATE deliveries SET days_covered = NULL, human = NULL, ai = NULL WHERE recipient LIKE 'of-010%'`,
    );
    // Until 0.3.0, the numbers of the whole site were stored for a part of it.
    await change(`
      UPDATE deliveries SET human = 3820, ai = 1820, said = replace(said, '"pages":"/page-1",', '')
      WHERE recipient LIKE 'of-020%'`);
    await loadDays(warehouse, day('2026-11-14'), day('2026-11-15'));
    expect(await run('2027-01-12T04:00:01Z')).toEqual([]);
    expect(await pageOf('views-2026-W46')).toContain('3,820');
    expect(await run('2027-01-12T04:00:00Z')).toEqual(
      [LEAD, PART].map((recipient) => `2026-W46 correction to ${recipient}`),
    );
    // The page is about all of the site, and each email about the part that was sent.
    expect(await pageOf('views-2026-W46')).toContain('5,348');
    const [, correction] = await mails(PART);
    expect(correction?.subject).toBe(
      'Correction: Acme Docs /page-1, Nov 9 – 15, 2026: 693 human views, not 495',
    );
    expect(correction?.text).toContain(`
Human views: 693, not 495
AI views: 343, not 245
Read: 693, not 495

Nov 14 – 15, loaded later: +198 human views and +98 AI views.
`);
  });
});

describe('a report whose numbers were restated', () => {
  it('is corrected if they changed by more than they usually do', async () => {
    const baseUrl = 'https://reports.example.com';
    const { warehouse, run, mails, restate } = await setUp({ baseUrl, weekly: { to: [LEAD] } });
    await loadDays(warehouse, day('2026-08-03'), day('2026-11-15'));
    await run('2026-11-16T03:00:00Z');
    // One view in a hundred is too little, no matter what is usual.
    await restate('2026-11-15', 80, '2026-11-17 03:00:00');
    expect(await run('2026-11-17T04:00:00Z')).toEqual([]);
    await restate('2026-11-14', 400, '2026-11-18 03:00:00');
    expect(await run('2026-11-18T04:00:00Z')).toEqual([`2026-W46 correction to ${LEAD}`]);
    const [, correction] = await mails();
    expect(correction?.subject).toBe('Correction: Acme Docs, Nov 9 – 15, 2026: 5,828 human views, not 5,348');
    expect(correction?.text).toContain('The platform has changed its numbers since the report was sent');
    // The sentences and numbers that were sent, beside those that are true now.
    expect(correction?.text).toContain(`
Human views hit a 15-week high: 5,828.
The report said: “A calm week: human views and AI views are as usual.”

Human views: 5,828 (+9%), not 5,348 (0%)
`);
    expect(correction?.text).toContain('\nNov 14 – 15, changed by the platform later: +480 human views.\n');
    expect(correction?.text).toContain(`\n${baseUrl}/prj_1/weekly-2026-W46.html\n`);
    // A second change is not worth a second email.
    await restate('2026-11-14', 900, '2026-11-19 03:00:00');
    expect(await run('2026-11-19T04:00:00Z')).toEqual([]);
  });

  it('is corrected in a digest by project, each cause with its share', async () => {
    const { warehouse, run, mails, restate } = await setUp(DIGEST, [{ id: 'prj_2', name: 'Other Docs' }]);
    await loadDays(warehouse, day('2026-08-03'), day('2026-11-14'));
    await loadDays(warehouse, day('2026-08-03'), day('2026-11-15'), 'prj_2');
    await run('2026-11-17T04:00:00Z');
    await loadDays(warehouse, day('2026-11-15'), day('2026-11-15'));
    await restate("2026-11-12' AND project = 'prj_1", 300, '2026-11-18 03:00:00');
    expect(await run('2026-11-18T04:00:00Z')).toEqual([`2026-W46 correction to ${LEAD}`]);
    const [, correction] = await mails();
    expect(correction?.subject).toBe('Correction: Weekly, Nov 9 – 15, 2026: 10,996 human views, not 9,932');
    const text = correction?.text ?? '';
    expect(text).toContain('\nACME DOCS\n');
    expect(text).not.toMatch(/other docs/i);
    expect(text).toContain(`
Nov 15, loaded later: +764 human views and +364 AI views (79% of the difference).
Nov 12, changed by the platform later: +300 human views (21% of the difference).
`);
  });

  it('is corrected in a digest with the project first whose numbers changed most', async () => {
    const { warehouse, run, mails, restate } = await setUp(DIGEST, [{ id: 'prj_2', name: 'Other Docs' }]);
    for (const project of ['prj_1', 'prj_2'])
      await loadDays(warehouse, day('2026-08-03'), day('2026-11-15'), project);
    await run('2026-11-16T03:00:00Z');
    for (const [project, more] of [
      ['prj_1', 300],
      ['prj_2', 900],
    ] as const)
      await restate(`2026-11-12' AND project = '${project}`, more, '2026-11-18 03:00:00');
    await run('2026-11-18T04:00:00Z');
    const text = (await mails())[1]?.text ?? '';
    expect(text.match(/^(?:ACME|OTHER) DOCS$/gm)).toEqual(['OTHER DOCS', 'ACME DOCS']);
  });

  it('of version 0.2.0, whose words are unknown, is corrected by its numbers', async () => {
    const { warehouse, run, mails, change, restate } = await setUp({
      weekly: [{ to: [LEAD] }, { to: [PART], digest: true }],
    });
    await loadDays(warehouse, day('2026-10-05'), day('2026-11-15'));
    await run('2026-11-16T03:00:00Z');
    await change('UPDATE deliveries SET said = NULL');
    await restate('2026-11-14', 400, '2026-11-18 03:00:00');
    await run('2026-11-18T04:00:00Z');
    const text = (await mails())[1]?.text ?? '';
    expect(text).toContain('\nHuman views: 5,748, not 5,348\nAI views: 2,548, as sent\n');
    expect(text).not.toMatch(/The report said|AI share|loaded later/);
    const [, digest] = await mails(PART);
    expect(digest?.subject).toBe('Correction: Weekly, Nov 9 – 15, 2026: 5,748 human views, not 5,348');
    expect(digest?.text).toContain('\nHuman views: 5,748, not 5,348\n');
  });

  it('is not corrected if every week of one of its projects changes as much', async () => {
    const { warehouse, run, restate } = await setUp(DIGEST, [{ id: 'prj_2' }]);
    for (const project of ['prj_1', 'prj_2'])
      await loadDays(warehouse, day('2026-08-03'), day('2026-11-15'), project);
    // Only these weeks were loaded as they ended; those before came with the first export.
    await restate("2026-11-01' AND project = 'prj_1", 400, '2026-11-04 12:00:00');
    await restate("2026-11-08' AND project = 'prj_1", 300, '2026-11-11 12:00:00');
    await run('2026-11-16T03:00:00Z');
    await restate("2026-11-15' AND project = 'prj_1", 480, '2026-11-18 03:00:00');
    expect(await run('2026-11-18T04:00:00Z')).toEqual([]);
  });

  const SAID = { days: 7, human: 100, ai: 0 };

  it.each([
    ['one view of a small site', SAID, { human: 101 }, 0, false],
    ['three of a hundred', SAID, { human: 103 }, 0, true],
    ['two of a hundred', SAID, { human: 102 }, 0, false],
    ['more than three times as usual', { ...SAID, human: 1000 }, { human: 1034 }, 0.011, true],
    ['three of a hundred, where one is usual', SAID, { human: 103 }, 0.011, false],
    ['one audience up, the other down', { ...SAID, ai: 100 }, { human: 103, ai: 97 }, 0, true],
    ['a change while a day may still change', SAID, { human: 200, final: 6 }, 0, false],
    ['one more day, without views', { ...SAID, days: 6 }, {}, 0, true],
    ['no views at first', { ...SAID, human: 0 }, { human: 5 }, 0, true],
    ['a digest with a new project', SAID, { expected: 14, days: 14, final: 14, human: 300 }, 0, false],
    ['a digest from which one was removed', { days: 14, human: 300, ai: 0 }, {}, 0, false],
  ])('%s', (_, said, change, usual, outdated) => {
    const stored = { length: 7, expected: 7, days: 7, final: 7, human: 100, ai: said.ai, ...change };
    expect(isOutdated(said, stored, usual)).toBe(outdated);
  });
});
