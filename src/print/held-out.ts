import type { Pair } from '../agents/pairs.js';
import type { HeldOutPage } from '../agents/select.js';
import { longDay } from '../format/days.js';
import { counted } from '../format/numbers.js';
import { escapeUnsafe, indented } from '../format/text.js';

/** Pages that chance holds out: which they are, what each waits for, and until when. The latest come first, `most` of them. */
export function heldOutLines(pages: readonly HeldOutPage[], most = 10): string[] {
  if (pages.length === 0) return [];
  const latest = pages.toSorted((one, other) => other.why.job - one.why.job);
  const more = latest.length - most;
  return [
    `${counted(pages.length, 'page')} held out, because improve.experiment is pairs. Each waits until eight weeks after ` +
      'the job of a similar page is merged; if that ends without a merge, it is free at once.',
    ...indented([
      ...latest.slice(0, most).map(heldOutLine),
      more > 0 && `${counted(more, 'more page')}: readership improve --verbose lists them`,
    ]),
  ];
}

/** The pairs of which chance will pick one page each. */
export const pairLines = (pairs: readonly Pair[]): string[] =>
  pairs.length === 0
    ? []
    : [
        'Because improve.experiment is pairs, chance picks one page of each pair when the jobs are created. The other ' +
          'one waits until eight weeks after the merge, or until that job ends without one.',
        ...indented(
          pairs.map(({ treated, heldOut }) => escapeUnsafe([treated, heldOut].sort().join('  or  '))),
        ),
      ];

const heldOutLine = ({ path, why: { twin, job, until, latest } }: HeldOutPage): string =>
  escapeUnsafe(
    `${path} waits for ${twin} (job ${job}), until ${until === null ? `${longDay(latest)} at the latest` : longDay(until)}`,
  );
