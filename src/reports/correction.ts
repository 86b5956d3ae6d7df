import { z } from 'zod';
import { AUDIENCES, type Audience, audienceName, viewsBy } from '../format/audience.js';
import { dayList, inSequence } from '../format/days.js';
import { percent, percentOf, signedPoints, thousands, writeChange } from '../format/numbers.js';
import { capitalised } from '../format/text.js';
import { dayColumn } from '../warehouse/query.js';
import type { tablesOf } from './answers.js';
import type { WeeklyModel } from './weekly/model.js';

const said = z.object({
  /** Project id. */
  project: z.string(),
  /** The pattern of the pages that it was about, unless they were all of the site. */
  pages: z.string().optional(),
  /** Sentences by what they are about, the headline first; none for reports of rows. */
  statements: z.array(z.object({ key: z.string(), text: z.string(), isShown: z.boolean() })),
  /** Numbers as shown, each with its change from the period before; without one, empty. */
  numbers: z.array(z.object({ name: z.string(), value: z.string(), changeText: z.string() })),
  human: z.int(),
  ai: z.int(),
  /** Days of the period that were not loaded; null if unknown. */
  missing: z.array(dayColumn).nullable(),
});
/** What a report said about a project. Stored with its delivery. */
export type Said = z.infer<typeof said>;

type About = Omit<Said, 'statements' | 'numbers'>;

/** What was stored with a delivery; undefined if it says nothing, as those of 0.2.0. */
export const storedWords = (json: string | null | undefined): Said[] | undefined =>
  json == null ? undefined : z.array(said).parse(JSON.parse(json));

const figure = (name: string, value: string, changeText = '') => ({ name, value, changeText });

/** What a report says about a project with these views: the weekly report, or else the values of its tables. */
export function saidAbout(
  weekly: WeeklyModel | undefined,
  tables: () => ReturnType<typeof tablesOf>,
  of: About,
): Said {
  if (weekly === undefined) {
    const facts = tables().flatMap((table) => table.facts ?? []);
    const numbers = facts.map(({ title, text }) => figure(title, text));
    return plainWords(of, numbers);
  }
  const { share, pages, statements } = weekly;
  const figureOf = (audience: Audience) => {
    const { views, change, without } = weekly[audience];
    const notAll = without === null ? '' : `, not counting ${without}`;
    const changeText = change.kind === 'unknown' ? '' : writeChange(change) + notAll;
    return figure(`${audienceName(audience)} views`, thousands(views), changeText);
  };
  const aiShare = share.ai === null ? '–' : percent(share.ai);
  const sharesDiffer = share.difference === null ? '' : signedPoints(share.difference);
  const others = [figure('AI share', aiShare, sharesDiffer), figure('Pages read', thousands(pages.read))];
  return { ...of, statements, numbers: [...AUDIENCES.map(figureOf), ...others] };
}

/** Only the views, and other numbers. */
export function plainWords(of: About, more: Said['numbers'] = []): Said {
  const views = AUDIENCES.map((audience) =>
    figure(`${audienceName(audience)} views`, thousands(of[audience])),
  );
  return { ...of, statements: [], numbers: [...views, ...more] };
}

/** A loaded day as it is stored now: its views, and whether a load changed them since a report was sent. */
export const storedDay = z.object({
  day: dayColumn,
  human: z.int(),
  ai: z.int(),
  is_final: z.boolean(),
  is_restated: z.boolean(),
});
export type StoredDays = readonly z.infer<typeof storedDay>[];

/** Not what waits for review, which was true when it was said. */
const isLasting = ({ key }: { readonly key: string }): boolean => key !== 'review';

/** What differs between what was said about a project and what would be said now. */
export function differenceOf(before: Said, now: Said, days: StoredDays) {
  const [sent, ...others] = before.statements.filter(({ isShown }) => isShown);
  const headlineNow = now.statements.find(isLasting);
  return {
    headline: headlineNow?.text ?? null,
    /** The headline that was sent, if it is another now. */
    headlineWas: sent && isLasting(sent) && sent.text !== headlineNow?.text ? sent.text : null,
    /** Other sentences that are no longer true, each with the one that is, if any. */
    untrue: others
      .filter(({ text }) => now.statements.every((other) => other.text !== text))
      .map(({ key, text }) => ({
        was: text,
        now: now.statements.find((other) => other.key === key)?.text ?? null,
      })),
    numbers: now.numbers.map((number) => {
      const was = before.numbers.find(({ name, value }) => name === number.name && value !== '–') ?? null;
      const isSame = was?.value === number.value && ['', number.changeText].includes(was.changeText);
      return { ...number, isSame, was };
    }),
    causes: causesOf(before, now, days),
    /** How many views the difference is about. */
    stake: Math.abs(now.human - before.human) + Math.abs(now.ai - before.ai),
  };
}

/** Why the views differ: days that were loaded later, and changes of the others, each with its share. */
function causesOf(before: Said, now: Said, days: StoredDays): string[] {
  const { missing } = before;
  if (missing === null) return [];
  const late = days.filter(({ day }) => missing.includes(day));
  const changed = days.filter((one) => one.is_restated && !late.includes(one));
  const loaded = viewsOf(late);
  const restated = { human: now.human - before.human - loaded.human, ai: now.ai - before.ai - loaded.ai };
  const causes = [
    { what: `${daysIn(late)}loaded later`, views: loaded, isTold: late.length > 0 },
    {
      what: `${daysIn(changed)}changed by the platform later`,
      views: restated,
      isTold: sizeOf(restated) > 0,
    },
  ];
  const all = sizeOf(loaded) + sizeOf(restated);
  // A share of 0% says nothing.
  const isShared = Math.min(sizeOf(loaded), sizeOf(restated)) > all / 100;
  return causes
    .filter(({ isTold }) => isTold)
    .map(({ what, views }) => {
      const share = isShared ? ` (${percentOf(sizeOf(views) / all)} of the difference)` : '';
      return `${capitalised(what)}: ${changeWords(views)}${share}.`;
    });
}

/** `Nov 9 – 12, `, `8 days between Nov 2 and Nov 29, `; empty for none. */
function daysIn(views: StoredDays): string {
  const days = views.map(({ day }) => day);
  const list = dayList(days);
  if (list === '') return '';
  if (days.length <= 3 || !list.includes(' and ')) return `${list}, `;
  return `${days.length} days between ${dayList(days.slice(0, 1))} and ${dayList(days.slice(-1))}, `;
}

type Counts = Readonly<Record<Audience, number>>;

const sizeOf = ({ human, ai }: Counts): number => Math.abs(human) + Math.abs(ai);

/** The views of some days together. */
export const viewsOf = (days: readonly Counts[]): Counts => ({
  human: days.reduce((sum, { human }) => sum + human, 0),
  ai: days.reduce((sum, { ai }) => sum + ai, 0),
});

const changeWords = (views: Counts): string => {
  const parts = AUDIENCES.filter((audience) => views[audience] !== 0).map(
    (audience) => (views[audience] > 0 ? '+' : '−') + viewsBy(audience, Math.abs(views[audience])),
  );
  return parts.length === 0 ? 'no views' : inSequence(parts);
};
