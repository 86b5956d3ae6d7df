import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import PostalMime from 'postal-mime';
import { expect, it } from 'vitest';
import { day, type Day, dayOf, daysBetween, startOfDay } from '../../src/day.js';
import { inHistory, rowsOf as rowsIn } from '../open-history.js';
import { servePlatform } from '../platform.js';
import { callCli } from '../run-cli.js';
import { clockAt } from '../sandbox/open-sandbox.js';
import { endedWith, env, historyFile, platformWorkspace } from './workspace.js';
import { useSmallReports } from '../small-reports.js';

const FIRST_DAY = day('2026-08-03');
const SETTINGS = `
mail: { from: docs@example.com }
reports: { weekly: { to: [docs@example.com] } }
alerts: { to: [ops@example.com] }
`;
const PAGES = ['/', '/guide', '/install', '/api', '/faq', '/changelog'];

/** Nights of `run` on a platform whose views come late, of which `share` says how many have come after so many days. */
async function nights(share: (daysAfter: number) => number, first: Day, last: Day) {
  const clock = clockAt(new Date(`${first}T02:30:00Z`));
  const platform = await servePlatform({
    now: clock.now,
    rowsOf: (at) => {
      const part = at < FIRST_DAY ? 0 : share(daysBetween(at, dayOf(clock.now())));
      // Fewer on weekends, and a few more or less each day.
      const weekday = startOfDay(at).getUTCDay() % 6 === 0 ? 60 : 100;
      const views = weekday + (daysBetween(FIRST_DAY, at) % 5);
      return PAGES.map((path, index) => {
        const [human, ai] = [Math.round((views - 5 * index) * part), Math.round((40 - index) * part)];
        return { path, human, ai, total: human + ai };
      }).filter(({ total }) => total > 0);
    },
  });
  const cwd = await useSmallReports(await platformWorkspace(platform, SETTINGS), ['improve']);
  const outbox = join(cwd, 'data', 'outbox');
  const known = new Set<string>();
  const sent: { on: Day; subject: string; text: string }[] = [];
  const printed = new Map<Day, string>();
  while (dayOf(clock.now()) <= last) {
    const on = dayOf(clock.now());
    // Emails are due on Mondays, and on the next days for those that wait; on the others, only the export matters.
    const weekday = startOfDay(on).getUTCDay();
    const command = weekday >= 1 && weekday <= 3 ? 'run' : 'export';
    const { stdout } = endedWith(0, await callCli([command], { cwd, env, now: clock.now }));
    printed.set(on, stdout);
    for (const file of (await readdir(outbox).catch(() => [])).filter((name) => !known.has(name))) {
      known.add(file);
      const { subject = '', text = '' } = await PostalMime.parse(await readFile(join(outbox, file)));
      sent.push({ on, subject, text });
    }
    clock.advance(86_400);
  }
  return { cwd, sent, printed };
}

it('a platform eight days late gets each email when its week is there, and no alert, from the first night on', async () => {
  const eightDays = (daysAfter: number) => (daysAfter >= 8 ? 1 : 0);
  const { cwd, sent, printed } = await nights(eightDays, day('2026-11-04'), day('2026-11-19'));
  expect(sent.map(({ on, subject }) => `${on}: ${subject.split(': ')[0] ?? ''}`)).toEqual([
    '2026-11-04: Acme Docs, Oct 19 – 25, 2026',
    '2026-11-09: Acme Docs, Oct 26 – Nov 1, 2026',
    '2026-11-16: Acme Docs, Nov 2 – 8, 2026',
  ]);
  for (const { subject, text } of sent) {
    expect(subject).toMatch(/A calm week|views have grown/);
    expect(text).not.toMatch(/no views|not arrived yet|not loaded|late data|\d,\d{3}%/i);
    expect(text).toMatch(/Human views: 3,[0-9]{3} \([+−]?[0-4]%/);
  }
  expect(printed.get(day('2026-11-18'))).toContain(
    'weekly 2026-W46, Acme Docs: waiting for views that have not arrived yet until Nov 25, 2026 at 00:00 UTC at the latest',
  );
  const delays = await inHistory(historyFile(cwd), (history) => rowsIn(history, 'FROM data_delays'));
  expect(delays).toMatchObject([{ views_until: '2026-11-11', days_awaited: 7, delay_days: 8 }]);
}, 600_000);
