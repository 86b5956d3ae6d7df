import Handlebars, { type HelperDelegate } from 'handlebars';
import { z } from 'zod';
import { day, dayOf } from '../day.js';
import * as numbers from '../format/numbers.js';
import { dayList, dayRange, longDay, moment, plainDayRange, shortDayRange } from '../format/days.js';
import { capitalised, mailLink, pageLink, shownPath, shownText, webLink, wholePath } from '../format/text.js';

const text = z.string();
const number = z.number();
const dayField = text.transform(day);
const days = z.array(dayField);
const range = z.object({ first: dayField, last: dayField });
const spark = z.array(
  z.object({ ago: number, views: number, low: number.nullable(), high: number.nullable() }),
);
const change: z.ZodType<numbers.Change> = z.discriminatedUnion('kind', [
  z.object({ kind: z.enum(['unknown', 'new', 'from zero']) }),
  z.object({ kind: z.literal('ratio'), ratio: number }),
]);

/** A full week of a page: its views, and the expected range if known. Oldest first. */
type SparkWeek = z.infer<typeof spark>[number];

const [WIDTH, HEIGHT, MARGIN] = [128, 30, 4];
/** Number of weeks on the axis, loaded or not. */
const WEEKS = 13;

/** A page's thirteen weeks as a sparkline over its expected range; a week that is not loaded is a gap. */
function sparkline(weeks: readonly SparkWeek[], audience: string): string {
  const most = Math.max(1, ...weeks.flatMap(({ views, high }) => [views, high ?? 0]));
  const x = ({ ago }: SparkWeek) => round(MARGIN + ((WEEKS - 1 - ago) / (WEEKS - 1)) * (WIDTH - 2 * MARGIN));
  const y = (views: number) => round(HEIGHT - MARGIN - (views / most) * (HEIGHT - 2 * MARGIN));
  const line = weeks
    .map((week, index) => `${weeks[index - 1]?.ago === week.ago + 1 ? 'L' : 'M'}${x(week)} ${y(week.views)}`)
    .join('');
  const band = [
    ...weeks.flatMap((week) => (week.high === null ? [] : `${x(week)} ${y(week.high)}`)),
    ...weeks.toReversed().flatMap((week) => (week.low === null ? [] : `${x(week)} ${y(week.low)}`)),
  ];
  const last = weeks.at(-1);
  const words = `Views per week: ${weeks.map(({ views }) => numbers.thousands(views)).join(', ')}`;
  return (
    `<svg role="img" class="spark" width="${WIDTH}" height="${HEIGHT}" viewBox="0 0 ${WIDTH} ${HEIGHT}" xmlns="http://www.w3.org/2000/svg"><title>${words}</title>` +
    (band.length > 0 ? `<path d="M${band.join('L')}Z" fill="var(--muted)" fill-opacity=".22"/>` : '') +
    `<path d="${line}" fill="none" stroke="var(--${audience})" stroke-width="1.6" stroke-linejoin="round" stroke-linecap="round"/>` +
    (last ? `<circle cx="${x(last)}" cy="${y(last.views)}" r="2.8" fill="var(--${audience})"/>` : '') +
    '</svg>'
  );
}

const round = (value: number): number => Math.round(value * 10) / 10;

const BLOCKS = '▁▂▃▄▅▆▇█';

/** The sparkline as plain text, one character per week. */
function textSparkline(weeks: readonly SparkWeek[]): string {
  const most = Math.max(1, ...weeks.map(({ views }) => views));
  const blockOf = (views: number) => BLOCKS[Math.round((views / most) * (BLOCKS.length - 1))] ?? '';
  const known = new Map(weeks.map(({ ago, views }) => [ago, blockOf(views)]));
  return Array.from({ length: WEEKS }, (_, index) => known.get(WEEKS - 1 - index) ?? ' ').join('');
}

/** A template function of one value, which is checked because a template can pass anything. */
const of =
  <Value>(schema: z.ZodType<Value>, write: (value: Value) => unknown): HelperDelegate =>
  (value: unknown) =>
    write(schema.parse(value));

const ofTwo =
  <First, Second>(
    first: z.ZodType<First>,
    second: z.ZodType<Second>,
    write: (first: First, second: Second) => unknown,
  ): HelperDelegate =>
  (one: unknown, two: unknown) =>
    write(first.parse(one), second.parse(two));

/** The functions that templates can call. */
export const templateFunctions: Readonly<Record<string, HelperDelegate>> = {
  thousands: of(number, numbers.thousands),
  compact: of(number, numbers.compact),
  percent: of(number, numbers.percent),
  finePercent: of(number, numbers.finePercent),
  signedPoints: of(number, numbers.signedPoints),
  counted: ofTwo(number, text, numbers.counted),
  inWords: of(number, numbers.inWords),
  capitalised: of(text, capitalised),
  upperCase: of(text, (words) => words.toUpperCase()),
  change: of(change, numbers.writeChange),

  dayRange: of(range, dayRange),
  shortDayRange: of(range, shortDayRange),
  plainDayRange: of(range, plainDayRange),
  asRange: of(dayField, (day) => ({ first: day, last: day })),
  dayList: of(days, dayList),
  longDay: of(dayField, longDay),
  dateOf: of(z.date(), (instant) => longDay(dayOf(instant))),
  moment: ofTwo(z.date(), text, moment),

  /** A path as text with line breaks allowed after slashes. */
  brokenPath: of(text, (path) => {
    const escaped = Handlebars.escapeExpression(shownPath(path));
    return new Handlebars.SafeString(escaped.replace(/(?!^)\//g, '/<wbr>'));
  }),
  shownPath: of(text, shownPath),
  wholePath: of(text, wholePath),
  shownText: of(text, shownText),
  audienceName: of(z.enum(['human', 'ai']), (audience) => (audience === 'ai' ? 'AI' : 'Human')),
  pageLink: ofTwo(text.nullable(), text, pageLink),
  mailLink: ofTwo(text.nullable(), text, mailLink),
  webLink: of(text.nullable(), webLink),

  /** Length of a bar, relative to the longest one. */
  barLength: ofTwo(number, number, (value, longest) => numbers.percent(longest > 0 ? value / longest : 0)),
  /** The same in pixels, for emails: `barPixels value longest 96`. Anything above zero is visible. */
  barPixels: (value: unknown, longest: unknown, most: unknown): number => {
    const [views, scale, pixels] = [number.parse(value), number.parse(longest), number.parse(most)];
    return views > 0 ? Math.max(2, Math.round((views / scale) * pixels)) : 0;
  },
  /** Thirteen weeks of a page as a sparkline; in plain text, as block characters. */
  sparkline: ofTwo(spark, text, (weeks, audience) => new Handlebars.SafeString(sparkline(weeks, audience))),
  textSparkline: of(spark, textSparkline),
  /** Alignment in plain text. */
  leftIn: ofTwo(number, text, (width, value) => value.padEnd(width)),
  rightIn: ofTwo(number, text, (width, value) => value.padStart(width)),
  /**
   * Whether a list is not empty, a number not zero, or a value not null; `if` alone would not say
   * which is meant.
   */
  has: of(z.unknown(), (value) => (Array.isArray(value) ? value.length > 0 : value !== null && value !== 0)),
  same: ofTwo(z.unknown(), z.unknown(), (one, two) => one === two),
};
