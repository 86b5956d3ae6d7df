import { signedPercent, thousands } from '../format/numbers.js';
import type { Evidence } from './evidence.js';

/** Changes of weekly reading smaller than this are called steady. */
const STEADY = 0.05;

/** Why a page is worth a job, in words made of numbers alone: nothing of the page's own text stands in it. */
export function reasonOf(evidence: Evidence, rank: number): string {
  const { weekly_human, weekly_ai, human_rank, ai_rank, weeks } = evidence;
  return (
    `number ${rank} in sustained reading, with ${views(weekly_human)} human views (number ${human_rank}) and ` +
    `${views(weekly_ai)} AI views (number ${ai_rank}) in a median week of the last ${weeks.length}; ` +
    `${trendOf(evidence)}, ${ratioOf(evidence)}`
  );
}

const views = (median: number): string => thousands(Math.round(median));

function trendOf({ trend, weeks }: Evidence): string {
  if (trend === null) return 'read only lately';
  if (Math.abs(trend) < STEADY) return 'steady';
  return `${signedPercent(trend)} over the ${Math.floor(weeks.length / 2)} weeks before`;
}

const ratioOf = ({ ai_per_human }: Evidence): string =>
  ai_per_human === null ? 'read by AI alone' : `${ai_per_human.toFixed(1)} AI views for each human one`;
