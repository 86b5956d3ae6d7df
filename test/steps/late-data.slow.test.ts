import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { day } from '../../src/day.js';
import { openChannel } from '../../src/mail/channel.js';
import { type Delivery, readDeliveries, storeDelivery } from '../../src/state/emails.js';
import { reportStep } from '../../src/steps/report.js';
import { keepSite, loadDays, mailSite, recordReported } from '../mail/site.js';
import { execute } from '../open-history.js';
import { serve } from '../serve.js';
import { partsOf } from './parts-of.js';

const LEAD = 'lead@example.com';
const [WEEK_46, WEEK_47] = ['2026-11-16T04:00:00Z', '2026-11-23T04:00:00Z'];

const DIGEST = { weekly: { to: [LEAD], digest: true } };
const AUDIENCES: object = { weekly: { to: [LEAD, 'chat'] }, improve: { to: [LEAD] } };

/** Two weeks of reports over a history that changes between them; `like` is a directory in which the first was sent. */
async function setUp(audiences = AUDIENCES, like?: string, projects = ['prj_1']) {
  const site = await mailSite(like);
  const { history, transport, mailsTo, directory } = site;
  const chat = await serve((_, response) => response.end('ok'));
  const reportsDir = join(directory, 'pages');
  if (like === undefined)
    for (const project of projects) await loadDays(history, day('2026-10-05'), day('2026-11-22'), project);
  const run = async (time: string, others: object[] = [], reports = audiences) => {
    const parts = partsOf(history, {
      state: site.state,
      sender: site.sender,
      settings: {
        projects: [{ id: 'prj_1', name: 'Acme Docs' }, ...others],
        mail: { from: 'docs@example.com' },
        channels: { chat: { kind: 'slack' } },
        reports,
      },
      workspace: { reportsDir },
      outgoing: {
        transport,
        channels: new Map([['chat', openChannel({ kind: 'slack', urlEnv: 'CHAT' }, { CHAT: chat.baseUrl })]]),
      },
      session: { now: () => new Date(time) },
    });
    const { error } = await reportStep(parts);
    expect(error).toBeUndefined();
  };
  /** Changes views of a day of week 46, as a later load does. */
  const restate = (change: string, project = 'prj_1') =>
    execute(history, `UPDATE days SET ${change} WHERE project = '${project}' AND day = DATE '2026-11-14'`);
  /** Changes what is stored of the email about week 46. */
  const change = (to: Partial<Delivery>) =>
    site.state.transaction(() => {
      for (const email of readDeliveries(site.state)) storeDelivery(site.state, { ...email, ...to });
    });
  const lastMail = async () => (await mailsTo(LEAD)).findLast(({ subject }) => !subject?.includes('agents'));
  const page = () => readFile(join(reportsDir, 'prj_1', 'weekly-2026-W47.html'), 'utf8');
  return { chat, change, lastMail, mailsTo, page, restate, run, site };
}

/** A directory in which the email about week 46 was sent, and the pages of both weeks are rendered. */
let sent: string;
beforeAll(async () => {
  const { run, site } = await setUp();
  await run(WEEK_46);
  await run(WEEK_47, [], {});
  await recordReported(site.state, new Date(WEEK_47));
  sent = await keepSite(site);
});
const afterWeek46 = () => setUp({ weekly: { to: [LEAD, 'chat'] } }, sent);

describe('a week whose views changed after its email', () => {
  it('is named by the next one with both numbers, in every form', async () => {
    const { chat, lastMail, mailsTo, page, restate, run } = await setUp();
    await run(WEEK_46);
    await restate('human = human + 54');
    await run(WEEK_47);
    const words = 'The email about Nov 9 – 15 said 5,348 human views; with late data, it is now 5,402.';
    const mail = await lastMail();
    expect(mail?.subject).toContain('Nov 16 – 22');
    expect(mail?.text).toContain(`! ${words}\n`);
    expect(mail?.html).toContain(words);
    expect(chat.seen.map(({ body }) => body.includes(words))).toEqual([false, true]);
    // Only the weekly email has the totals of a week, and its page is not an email.
    const all = (await mailsTo(LEAD)).map(({ text }) => text?.includes('late data'));
    expect(all.filter((found) => found)).toHaveLength(1);
    expect(await page()).not.toContain('late data');
  });

  it('is named with both audiences if both changed', async () => {
    const { lastMail, restate, run } = await afterWeek46();
    await restate('human = human - 100, ai = ai + 26');
    await run(WEEK_47);
    expect((await lastMail())?.text).toContain(
      'The email about Nov 9 – 15 said 5,348 human views and 2,548 AI views; with late data, it is now 5,248 and 2,574.',
    );
  });

  it('is not named for less than 1%', async () => {
    const { lastMail, restate, run } = await afterWeek46();
    await restate('human = human + 53, ai = ai + 25');
    await run(WEEK_47);
    expect((await lastMail())?.text).not.toContain('late data');
  });

  it('is not named if its email was not sent, or its numbers are unknown', async () => {
    for (const to of [{ state: 'failed' as const }, { days_covered: null, human: null, ai: null }]) {
      const { change, lastMail, restate, run } = await afterWeek46();
      await change(to);
      await restate('human = human + 1000');
      await run(WEEK_47);
      expect((await lastMail())?.text).not.toContain('late data');
    }
  });

  it('is named in a digest by the sum of its projects, but not because a project was added', async () => {
    const { lastMail, restate, run } = await setUp(DIGEST, undefined, ['prj_1', 'prj_2']);
    const other = [{ id: 'prj_2', name: 'Other Docs' }];
    await run(WEEK_46, other);
    await restate('human = human + 300', 'prj_2');
    await run(WEEK_47, other);
    const words =
      'The email about Nov 9 – 15 added up to 10,696 human views; with late data, it is now 10,996.';
    for (const part of [(await lastMail())?.text, (await lastMail())?.html]) expect(part).toContain(words);

    const grown = await setUp(DIGEST, undefined, ['prj_1', 'prj_2']);
    await grown.run(WEEK_46);
    await grown.run(WEEK_47, other);
    expect((await grown.lastMail())?.text).not.toContain('late data');
  });
});
