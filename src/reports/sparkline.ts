import { thousands } from '../format/numbers.js';

/** A full week of a page: its views, and the expected range if known. Oldest first. */
export interface SparkWeek {
  readonly ago: number;
  readonly views: number;
  readonly low: number | null;
  readonly high: number | null;
}

const [WIDTH, HEIGHT, MARGIN] = [128, 30, 4];
/** Number of weeks on the axis, loaded or not. */
const WEEKS = 13;

/** A page's thirteen weeks as a sparkline over its expected range; a week that is not loaded is a gap. */
export function sparkline(weeks: readonly SparkWeek[], audience: string): string {
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
  const words = `Views per week: ${weeks.map(({ views }) => thousands(views)).join(', ')}`;
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
export function textSparkline(weeks: readonly SparkWeek[]): string {
  const most = Math.max(1, ...weeks.map(({ views }) => views));
  const blockOf = (views: number) => BLOCKS[Math.round((views / most) * (BLOCKS.length - 1))] ?? '';
  const known = new Map(weeks.map(({ ago, views }) => [ago, blockOf(views)]));
  return Array.from({ length: WEEKS }, (_, index) => known.get(WEEKS - 1 - index) ?? ' ').join('');
}
