import Handlebars, { type HelperDelegate, type HelperOptions } from 'handlebars';
import { z } from 'zod';
import { day, dayOf } from '../day.js';
import { isCut } from '../charts/axes.js';
import type { Chart, LineChart } from '../charts/chart.js';
import { drawChart } from '../charts/lines.js';
import { isSize, type Size } from '../charts/svg.js';
import { audienceColumn, audienceName, viewsBy } from '../format/audience.js';
import * as numbers from '../format/numbers.js';
import {
  dayList,
  dayRange,
  longDay,
  moment,
  namedRange,
  plainDayRange,
  shortDayRange,
} from '../format/days.js';
import { chatLink, ITEM, markedForChats } from '../format/chat.js';
import { capitalised, shownPath, shownText, webLink, wholePath } from '../format/text.js';
import { pageLink } from './report-pages.js';
import { type chartOf, viewsChart, weeksSparkline, weeksText } from './weekly/chart.js';
import { sparkWeek } from './weekly/rows.js';

const text = z.string();
const number = z.number();
const dayField = text.transform(day);
const days = z.array(dayField);
const range = z.object({ first: dayField, last: dayField });
const spark = z.array(sparkWeek);
const project = z.object({ id: text, siteUrl: text.nullable(), webApp: text.nullable() });
const isChart = (given: unknown, ...kinds: readonly Chart['kind'][]) =>
  z.object({ kind: z.enum(kinds) }).safeParse(given).success;
const chart = z.custom<Chart>((given) => isChart(given, 'lines', 'bars'), 'not a chart');
const lines = z.custom<LineChart>((given) => isChart(given, 'lines'), 'not a chart of lines');
const weeklyChart = z.custom<ReturnType<typeof chartOf>>(
  (given) => z.object({ days: z.array(z.unknown()), reported: number }).safeParse(given).success,
  'not the chart of the weekly report',
);
const size = z.custom<Size>(isSize, 'neither page, tablet, phone nor email');
const linkable = z.union([project, text.nullable()]);
/** Templates of one's own may name only the site. */
const linked = (of: z.infer<typeof project> | string | null) =>
  of !== null && typeof of === 'object' ? of : { id: '', siteUrl: of, webApp: null };

/** Whether a report is being written as an email. */
const isEmail = z
  .object({ data: z.object({ root: z.object({ isEmail: z.boolean().default(false) }) }) })
  .transform(({ data }) => data.root.isEmail);
const LONGEST_MAIL_LINK = 300;

/** A template function of one value, which is checked because a template can pass anything. */
export const of =
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

/** A number, or a dash for null, which is not zero. */
export const orDash = (write: (value: number) => string): HelperDelegate =>
  of(number.nullable(), (value) => (value === null ? '–' : write(value)));

/** In characters, a part of a path that fits even into a column on a phone, and the pieces of longer ones. */
const SHORT_PART = 16;
const LONG_PART = /[^-_.]{0,14}[-_./]|[^-_.]{1,15}/gu;

/** The functions that templates can call. */
export const templateFunctions: Readonly<Record<string, HelperDelegate>> = {
  thousands: orDash(numbers.thousands),
  compact: of(number, numbers.compact),
  percent: orDash(numbers.percent),
  signedPercent: orDash(numbers.signedPercent),
  signedPoints: of(number, numbers.signedPoints),
  counted: ofTwo(number, text, numbers.counted),
  inWords: of(number, numbers.inWords),
  capitalised: of(text, capitalised),
  upperCase: of(text, (words) => words.toUpperCase()),
  change: of(numbers.countChange, numbers.writeChange),
  fromWeekBefore: of(numbers.countChange, numbers.fromWeekBefore),

  dayRange: of(range, dayRange),
  shortDayRange: of(range, shortDayRange),
  plainDayRange: of(range, plainDayRange),
  namedRange: of(range, namedRange),
  asRange: of(dayField, (day) => ({ first: day, last: day })),
  dayList: of(days, dayList),
  longDay: of(dayField, longDay),
  dateOf: of(z.date(), (instant) => longDay(dayOf(instant))),
  moment: ofTwo(z.date(), text, moment),

  /** A path as text with line breaks after slashes; inside a part only if it is long. */
  brokenPath: of(text, (path) => {
    const parts = shownPath(path).match(/^\/[^/]*\/?|[^/]+\/?|\//gu) ?? [];
    const pieces = parts.flatMap((part) =>
      part.length <= SHORT_PART ? part : (part.match(LONG_PART) ?? part),
    );
    return new Handlebars.SafeString(pieces.map((piece) => Handlebars.escapeExpression(piece)).join('<wbr>'));
  }),
  shownPath: of(text, shownPath),
  wholePath: of(text, wholePath),
  shownText: of(text, shownText),
  audienceName: of(audienceColumn, audienceName),
  viewsBy: ofTwo(audienceColumn, number, viewsBy),
  /** `pageLink project path`, or `pageLink project.siteUrl path` for the page on the site. */
  pageLink: (of: unknown, path: unknown, options: HelperOptions) => {
    const link = pageLink(linked(linkable.parse(of)), text.parse(path));
    // Email clients clip long emails.
    return isEmail.parse(options) && link !== undefined && link.length > LONGEST_MAIL_LINK ? undefined : link;
  },
  /** A path in plain text, which in a chat leads into the web app if that has an address. */
  chatPath: ofTwo(project, text, (of, path) =>
    of.webApp === null ? shownPath(path) : chatLink(pageLink(of, path) ?? '', shownPath(path)),
  ),
  /** `{{#chat}}…{{/chat}}`: the part of a text that a chat gets; without it, a chat gets all. */
  chat(this: unknown, { fn }: HelperOptions) {
    return markedForChats(fn(this));
  },
  /** `{{item}}` before an item of a list: a chat gets it whole or not at all. */
  item: () => ITEM,
  webLink: of(text.nullable(), webLink),

  /** Length of a bar, relative to the longest one. Anything above zero is visible. */
  barLength: ofTwo(number, number, (value, longest) =>
    value > 0 && longest > 0 ? `${Math.max(2, Math.round(100 * Math.min(1, value / longest)))}%` : '0%',
  ),
  /** `drawChart chart "page"`: a chart as SVG, for a page, a tablet, a phone or an email. */
  drawChart: ofTwo(chart, size, (chart, size) => new Handlebars.SafeString(drawChart(chart, size))),
  /** Whether triangles mark values beyond the end of the scale. */
  isCut: of(lines, ({ lines }) => isCut(lines.map(({ values }) => values))),
  /** The points of a chart for the script that shows the values under the pointer. */
  chartPoints: of(lines, ({ points }) =>
    JSON.stringify(points.map(({ first, last, said }) => ({ first, last, said }))),
  ),
  /** The chart of the weekly report. */
  viewsChart: of(weeklyChart, viewsChart),
  /** Thirteen weeks of a page as a sparkline; in plain text, as block characters. */
  sparkline: ofTwo(
    spark,
    audienceColumn,
    (weeks, of) => new Handlebars.SafeString(weeksSparkline(weeks, of)),
  ),
  textSparkline: of(spark, weeksText),
  /** Alignment in plain text. */
  leftIn: ofTwo(number, text, (width, value) => value.padEnd(width)),
  rightIn: ofTwo(number, text, (width, value) => value.padStart(width)),
  /**
   * Whether a list is not empty, a number not zero, or a value not null; `if` alone would not say
   * which is meant.
   */
  has: of(z.unknown(), (value) => (Array.isArray(value) ? value.length > 0 : value !== null && value !== 0)),
  more: ofTwo(number, number, (one, two) => one > two),
  same: ofTwo(z.unknown(), z.unknown(), (one, two) => one === two),
};
