import { expect, test } from 'vitest';
import { addDays, day, type Day, daysBetween } from '../../src/day.js';
import { namedDay } from '../../src/format/days.js';
import { thousands } from '../../src/format/numbers.js';
import { randomOf } from './random.js';
import { type CountedSite, historyOf } from './history.js';
import { prepare } from './prepare.js';

type Audience = 'human' | 'ai';

const FIRST = day('2026-06-01');
const WEEKS = 24;
/** Two sites of each kind; headlines.txt has the news of the first. */
const REPEATS = 2;
/** In CI, a few of the sites. */
const STRIDE = process.env['CI'] === undefined ? 1 : 9;

/** What happens to a site: a factor of the views of a page by an audience on a day. */
type Event = (at: { week: number; day: number; page: number; ai: boolean }) => number;
const from = (week: number) => Array.from({ length: 5 }, (_, at) => week + at);
/** The weeks whose headlines are told are counted from the first. */
const KINDS: readonly [name: string, told: number[], event: Event, views?: number, noise?: number][] = [
  ['steady', [3, 8, 13, 18, 23], () => 1],
  ['equal audiences', [9, 12, 15, 18, 21], () => 1, 9000, 0.08],
  ['AI grows', [5, 12, 16, 18, 22], ({ week, ai }) => (ai ? 1.05 ** (week - 16) : 1), 9000, 0.04],
  [
    'a night of bots',
    from(18),
    ({ week, day, page, ai }) => (ai && week === 19 && day === 1 && page === 4 ? 400 : 1),
  ],
  [
    'a page goes viral',
    from(19),
    ({ week, day, page, ai }) => (!ai && page === 2 && week === 20 && day > 1 ? 12 : 1),
  ],
  ['a page vanishes', from(18), ({ week, page }) => (week >= 19 && page === 1 ? 0 : 1)],
  ['a small site', [10, 14, 18, 22, 23], ({ week }) => (week === 23 ? 1.6 : 1), 300, 0.15],
  ['a tiny site', [2, 9, 14, 18, 23], () => 1, 8, 0.5],
  ['AI doubles at once', from(19), ({ week, ai }) => (ai && week >= 20 ? 2 : 1)],
  ['Christmas', from(19), ({ week }) => (week === 20 ? 0.45 : week === 21 ? 0.7 : 1)],
  ['no AI until week 19', from(17), ({ week, ai }) => (ai && week < 19 ? 0 : 1), 5000, 0.06],
  ['a slow decline', [8, 11, 14, 18, 23], ({ week, ai }) => (ai ? 1 : 0.97 ** week), 9000, 0.03],
  ['restless', [9, 12, 15, 18, 21], () => 1, 9000, 0.3],
  ['AI overtakes people', from(15), ({ week, ai }) => (ai ? (week < 16 ? 0.8 : 1.3) : 1), 9000, 0.04],
  [
    'a launch day',
    from(19),
    ({ week, day, page, ai }) => (!ai && week === 20 && day === 3 ? (page === 0 ? 9 : 2) : 1),
  ],
  ['three pages take off', from(18), ({ week, page }) => (week >= 20 && page > 3 && page < 7 ? 2.5 : 1)],
  ['AI leaves', from(19), ({ week, ai }) => (ai && week >= 20 ? 0.02 : 1)],
  ['two steps up', from(17), ({ week, ai }) => (ai || week < 18 ? 1 : week < 19 ? 1.4 : 1.9)],
  ['young', [0, 1, 2, 4, 7], ({ week }) => 1.1 ** Math.min(week, 6)],
  ['huge', [12, 16, 19, 20, 21], ({ week }) => (week === 20 ? 1.25 : 1), 90_000_000, 0.02],
];

function generate(index: number): CountedSite {
  const kind = KINDS[index % KINDS.length];
  if (kind === undefined) throw new RangeError('no kinds of sites');
  const [, , event, total = 9000, noise = 0.05] = kind;
  const random = randomOf(7 * index + 1);
  const normal = () => Math.sqrt(-2 * Math.log(random() + 1e-9)) * Math.cos(2 * Math.PI * random());
  const site: CountedSite = new Map();
  for (let week = 0; week < WEEKS; week++)
    for (let day = 0; day < 7; day++) {
      const views = new Map<string, { human: number; ai: number }>();
      for (let page = 0; page < 12; page++) {
        const of = (who: Audience) => {
          const factor = (day > 4 ? 0.6 : 1.16) * event({ week, day, page, ai: who === 'ai' });
          const mean = (total / 7 / (page + 1.5) / 2.3) * factor;
          return Math.max(0, Math.round(mean * Math.exp(noise * normal()) + Math.sqrt(mean) * normal()));
        };
        const counts = { human: of('human'), ai: of('ai') };
        // A day without any view would count as not loaded here.
        if (page === 0) counts.human += 1;
        if (counts.human + counts.ai > 0) views.set(`/docs/page-${page}`, counts);
      }
      site.set(addDays(FIRST, 7 * week + day), views);
    }
  return site;
}

/** Counts of the generated data, by what a sentence is about. */
function truthOf(site: CountedSite, monday: Day) {
  const on = (date: Day, who: Audience, path?: string) =>
    [...(site.get(date) ?? [])].reduce(
      (sum, [name, views]) => sum + (path === undefined || name === path ? views[who] : 0),
      0,
    );
  const days = (from: Day) => Array.from({ length: 7 }, (_, at) => addDays(from, at));
  const week = (from: Day, who: Audience, path?: string, without: readonly number[] = []) =>
    days(from).reduce((sum, date, at) => sum + (without.includes(at) ? 0 : on(date, who, path)), 0);
  return { on, week, before: addDays(monday, -7) };
}

const COUNT = '([\\d,]+)';
const number = (text = '') => Number(text.replaceAll(',', ''));
const whoIs = (text = ''): Audience => (/ai/i.test(text) ? 'ai' : 'human');
const near = (words: string, ratio: number) => {
  if (words.endsWith('-fold')) return `${thousands(Math.round(ratio + 1))}-fold`;
  if (ratio < -0.995 && ratio > -1) return 'more than 99%';
  return `${thousands(Math.round(Math.abs(ratio) * 100))}%`;
};

/**
 * Reads a printed sentence and finds the same facts in the data. Returns what is wrong with it; knows
 * nothing of how sentences are made.
 */
function problemIn(sentence: string, site: CountedSite, monday: Day, sofar: { without: number[] }) {
  const { on, week, before } = truthOf(site, monday);
  /** The parts of the sentence, if it has this form. */
  const one = (form: TemplateStringsArray, ...parts: readonly string[]) =>
    new RegExp(`^${String.raw(form, ...parts)}$`).exec(sentence);
  const dayOf = (words: string) =>
    Array.from({ length: 14 }, (_, at) => addDays(before, at)).find((date) => namedDay(date) === words);
  const wrong = (what: string, expected: unknown) => `${sentence} ${what} is ${String(expected)}`;
  let found = one`(Human|AI) views (rose|fell)( again| again by)? (?:((?:more than )?\S+%|\S+-fold)|from none) to ${COUNT}(?: on the (\w+) days that can be compared)?(?:, an? (\d+)-week high)?(?:, (?:(\d+%|all) of the|more than the whole) (?:rise|fall)(?: on one page, (\S+?),?)?(?:,? on (\w+, \w+ \d+))?)?\.`;
  if (found) {
    const [, name, verb, , size, count, partly, , share, path, date] = found;
    const who = whoIs(name);
    const without = partly === undefined ? [] : sofar.without;
    const [now, then] = [week(monday, who, undefined, without), week(before, who, undefined, without)];
    if (partly === undefined && number(count) !== now) return wrong('now', now);
    if (now > then !== (verb === 'rose')) return wrong('before', then);
    if (partly === undefined && size !== undefined && near(size, now / then - 1) !== size)
      return wrong('change', now / then - 1);
    if (share === undefined || partly !== undefined) return undefined;
    const at = date === undefined ? undefined : dayOf(date);
    const part =
      at === undefined
        ? week(monday, who, path) - week(before, who, path)
        : on(at, who, path) - on(addDays(at, -7), who, path);
    const actual = Math.round((100 * part) / (now - then));
    return actual === (share === 'all' ? 100 : parseInt(share)) ? undefined : wrong('share', actual);
  }
  found = one`(Human|AI) views hit an? (\d+)-week high: ${COUNT}\.`;
  if (found) {
    const who = whoIs(found[1]);
    const all = Array.from({ length: WEEKS }, (_, at) => addDays(FIRST, 7 * at)).filter(
      (from) => from <= monday,
    );
    const highest = Math.max(...all.map((from) => week(from, who)));
    return highest === number(found[3]) && week(monday, who) === highest && all.length === Number(found[2])
      ? undefined
      : wrong('high', highest);
  }
  found = one`(Human|AI) views (?:are|stay) (above|below) their usual range: ${COUNT}, where ${COUNT} to ${COUNT} is usual\.`;
  if (found) {
    const [, name, side, count, low, high] = found;
    const isOutside = side === 'above' ? number(count) > number(high) : number(count) < number(low);
    return week(monday, whoIs(name)) === number(count) && isOutside
      ? undefined
      : wrong('now', week(monday, whoIs(name)));
  }
  found = one`${COUNT} (human|AI) views came on one day, (\w+, \w+ \d+)(?:, most of them to one page, (\S+))?\.`;
  if (found) {
    const [, count, name, date = '', path] = found;
    const at = dayOf(date);
    if (at === undefined || on(at, whoIs(name)) !== number(count)) return wrong('day', at);
    sofar.without.push(daysBetween(before, at) % 7);
    return path === undefined || on(at, whoIs(name), path) > number(count) / 2
      ? undefined
      : wrong('page', path);
  }
  found = one`(Human|AI) views (?:now|again) exceed (?:human|AI) views: ${COUNT} vs\. ${COUNT}\.`;
  if (found) {
    const who = whoIs(found[1]);
    const [leads, other] = [week(monday, who), week(monday, who === 'ai' ? 'human' : 'ai')];
    return leads === number(found[2]) && other === number(found[3]) && leads > other
      ? undefined
      : wrong('lead', [leads, other]);
  }
  found = one`(\S+) had (.*)\.`;
  if (found)
    for (const part of found[2]?.split(', and ') ?? []) {
      const [, count, name] =
        new RegExp(
          `^${COUNT} (human|AI) views?, (?:where none were expected|\\S+ (?:more|fewer) than expected)$`,
        ).exec(part) ?? [];
      const actual = week(monday, whoIs(name), found[1]);
      if (actual !== number(count)) return wrong('page', actual);
    }
  if (found) return undefined;
  found = one`(Human|AI) views have (grown|fallen) ((?:more than )?\S+) in \w+ weeks, from about ${COUNT} to ${COUNT} a week\.`;
  if (found) {
    const [, name, verb, size = '', from, to] = found;
    const isTrue =
      number(to) > number(from) === (verb === 'grown') && near(size, number(to) / number(from) - 1) === size;
    const now = week(monday, whoIs(name));
    return isTrue && now > 0.7 * number(to) && now < 1.4 * number(to) ? undefined : wrong('course', now);
  }
  found = one`${COUNT} human views?(?: \(([^)]+?)(?: from the week before| that of the week before)?\))? and ${COUNT} AI views?(?: \(([^)]+?)(?: from the week before| that of the week before)?\))? (?:compared with the week before|this week)\.`;
  if (found) {
    const [, human, humanChange, ai, aiChange] = found;
    if (week(monday, 'human') !== number(human) || week(monday, 'ai') !== number(ai))
      return wrong('totals', week(monday, 'ai'));
    for (const [who, change] of [
      ['human', humanChange],
      ['ai', aiChange],
    ] as const) {
      const percent = Math.round((week(monday, who) / Math.max(1, week(before, who)) - 1) * 100);
      if (
        change?.endsWith('%') === true &&
        week(before, who) > 0 &&
        Number(change.replace('−', '-').replace(/[+%,]/g, '')) !== percent
      )
        return wrong('change', percent);
    }
    return undefined;
  }
  found = one`In the week before, ${COUNT} (human|AI) views came on (\w+, \w+ \d+)\.`;
  if (found) {
    const at = dayOf(found[3] ?? '');
    if (at === undefined || on(at, whoIs(found[2])) !== number(found[1])) return wrong('day', at);
    sofar.without.push(daysBetween(before, at) % 7);
    return undefined;
  }
  found = one`Without (?:\w+day(?:, | and )?)+, the other (\w+) days had ${COUNT} (human|AI) views \(.*\)\.`;
  if (found) {
    const rest = week(monday, whoIs(found[3]), undefined, sofar.without);
    return rest === number(found[2]) ? undefined : wrong('rest', rest);
  }
  found = one`(Human|AI) views are back in their usual range: ${COUNT}, after ${COUNT} the week before\.`;
  if (found) {
    const [now, then] = [week(monday, whoIs(found[1])), week(before, whoIs(found[1]))];
    return now === number(found[2]) && then === number(found[3]) ? undefined : wrong('now', [now, then]);
  }
  if (one`(Human|AI) views are less than 1% of all views\.`) return undefined;
  if (one`This is the first week in the history, so there is nothing to compare it with yet\.`)
    return monday === FIRST ? undefined : wrong('first', FIRST);
  found = one`No (human|AI) views were recorded this week\.`;
  if (found) return week(monday, whoIs(found[1])) === 0 ? undefined : wrong('not', 'none');
  if (one`A calm week: human views and AI views are as usual\.`) return undefined;
  if (one`Compared with the week before: human \S+( times)? and AI \S+( times| 0)?\.`) return undefined;
  return `no reader for: ${sentence}`;
}

const SLIPS =
  /\b(\w+) \1\b|Humans views|AIs views|\b1 views\b|NaN|Infinity|undefined|null|\s[.,;]|\.\.|\b0–|1 (?:pages|days)\b|\ba (?:8|11|18)\d?-|−0%|\+0%/;

const sentencesIn = (text: string): string[] =>
  text.split(/(?<=(?<!vs)\.) (?=[A-Z\d/])/).filter((one) => one !== '');

test('the news of generated sites is true, sentence by sentence, and reads as in headlines.txt', async () => {
  const lines: string[] = [];
  const problems: string[] = [];
  for (let index = 0; index < REPEATS * KINDS.length; index += STRIDE) {
    const [kind = '', told = []] = KINDS[index % KINDS.length] ?? [];
    const site = generate(index);
    const history = await historyOf(site);
    for (const week of told) {
      const monday = addDays(FIRST, 7 * week);
      const report = await prepare({
        reader: history.reader,
        name: 'weekly',
        period: monday,
        now: new Date('2027-01-20T05:00:00Z'),
      });
      const model = JSON.parse(report.json()) as { headline: { text: string }[]; detail: string };
      const headline = model.headline.map(({ text }) => text).join('');
      if (index < KINDS.length) lines.push(`${kind} ${index}, week ${week}: ${headline} | ${model.detail}`);
      const sofar = { without: [] as number[] };
      for (const sentence of [...sentencesIn(headline), ...sentencesIn(model.detail)]) {
        const problem = problemIn(sentence, site, monday, sofar);
        if (problem !== undefined) problems.push(`site ${index}, week ${week}: ${problem}`);
      }
      for (const words of [report.text(), report.chat(), report.subject, report.preheader]) {
        const slip = SLIPS.exec(words.replace(/^ .*$/gm, ''));
        if (slip !== null) problems.push(`site ${index}, week ${week}: a slip: ${slip[0]}`);
      }
    }
  }
  if (STRIDE === 1) await expect(`${lines.join('\n')}\n`).toMatchFileSnapshot('headlines.txt');
  expect(problems).toEqual([]);
}, 900_000);
