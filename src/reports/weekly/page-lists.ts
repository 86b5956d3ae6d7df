import { changeOf, type Change } from '../../format/change.js';
import { type Audience, type Comparison, USUAL_WEEKS_LEAST } from './comparison.js';
import type { MostReadRow, MovedRow, weeklyRows } from './rows.js';
import type { z } from 'zod';

/** The lists of pages that the weekly report shows. Counts are views in the week. */
export interface PageLists {
  /** Null when there is no whole week before to tell it from. */
  readonly moved: Moved | null;
  readonly mostRead: readonly MostRead[];
  /** The largest count in `mostRead`, human or AI: the common scale of its bars. */
  readonly longestBar: number;
  /** Pages that one audience reads and the other hardly does, by the one that reads them. */
  readonly oneSided: Readonly<Record<Audience, readonly PageViews[]>>;
  readonly newPages: readonly PageViews[];
}

interface Moved {
  /** What `expected` rests on; in a young history it is the week before. */
  readonly comparedWith: MovedRow['compared_with'];
  readonly pages: readonly {
    readonly audience: Audience;
    readonly path: string;
    readonly views: number;
    readonly expected: number;
    readonly direction: 'up' | 'down';
  }[];
}

interface PageViews {
  readonly path: string;
  readonly human: number;
  readonly ai: number;
}

interface MostRead {
  readonly path: string;
  readonly human: { readonly views: number; readonly change: Change };
  readonly ai: { readonly views: number; readonly change: Change };
}

type Rows = Pick<z.infer<typeof weeklyRows>, 'moved' | 'most_read' | 'one_sided' | 'pages'>;

export function pageListsOf(rows: Rows, week: Comparison, isFirstWeek: boolean): PageLists {
  const readBy = (audience: Audience): PageViews[] =>
    rows.one_sided
      .filter(({ reader }) => reader === audience)
      .map(({ path, human, ai }) => ({ path, human, ai }));
  const comparedWith = rows.moved[0]?.compared_with ?? basisOf(week);
  return {
    moved:
      week.thisWeek.days_loaded === 7 && comparedWith !== null
        ? {
            comparedWith,
            pages: rows.moved.map(({ audience, path, views, expected }) => ({
              ...{ audience, path, views, expected },
              direction: views > expected ? 'up' : 'down',
            })),
          }
        : null,
    mostRead: rows.most_read.map((page) => mostRead(page, week, isFirstWeek)),
    longestBar: Math.max(0, ...rows.most_read.flatMap(({ human, ai }) => [human, ai])),
    oneSided: { human: readBy('human'), ai: readBy('ai') },
    newPages: isFirstWeek ? [] : rows.pages.new_pages,
  };
}

/** What pages are compared with where none has moved. */
const basisOf = ({ earlier, before }: Comparison): MovedRow['compared_with'] | null =>
  earlier.length >= USUAL_WEEKS_LEAST ? 'earlier weeks' : before === null ? null : 'the week before';

/** A change against the week before; unknown when that cannot be compared with. */
export const changeSince = ({ before }: Comparison, now: number, then: number | undefined): Change =>
  before === null || then === undefined ? { kind: 'unknown' } : changeOf(now, then);

function mostRead(page: MostReadRow, week: Comparison, isFirstWeek: boolean): MostRead {
  const change = (now: number, then: number): Change =>
    page.first_seen && !isFirstWeek ? { kind: 'new' } : changeSince(week, now, then);
  return {
    path: page.path,
    human: { views: page.human, change: change(page.human, page.human_before) },
    ai: { views: page.ai, change: change(page.ai, page.ai_before) },
  };
}
