import type { ProjectSettings, Settings } from '../config/schema.js';
import type { Reader } from '../history/duckdb.js';
import type { State } from '../state/state.js';
import { planImprovement } from './plan.js';
import { readRanking } from './ranking.js';
import type { Selection } from './select.js';
import type { Sitemap } from './sitemap.js';

/** The pages of a project that are flagged or up next now; undefined if that cannot be known. */
export type SelectNow = (
  project: Pick<ProjectSettings, 'id' | 'siteUrl'>,
) => Promise<CurrentSelection | undefined>;
export type CurrentSelection = Pick<Selection, 'flagged' | 'next'>;

interface Sources {
  readonly reader: Reader;
  readonly state: State;
  readonly rules: Settings['improve'];
  readonly now: Date;
  readonly signal: AbortSignal;
}

/** Selects them as `readership improve` does. The sitemap is read once, when it is first needed. */
export function selectingNow({ reader, state, rules, now, signal }: Sources): SelectNow {
  let sitemap: Promise<Sitemap | undefined> | undefined;
  return async ({ id, siteUrl }) => {
    // It needs the HTTP client, which takes long to load, and which other reports do without.
    const { readSitemap, SitemapError } = await import('./sitemap.js');
    try {
      const isListed = (await (sitemap ??= readSitemap(rules.sitemap, signal)))?.listedOn(siteUrl);
      const ranking = await readRanking(reader, id, rules, now);
      return planImprovement(state, id, rules, { ...ranking, now, isListed });
    } catch (error) {
      // The improve step says what is wrong with it.
      if (error instanceof SitemapError) return undefined;
      throw error;
    }
  };
}
