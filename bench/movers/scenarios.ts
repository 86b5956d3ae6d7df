import type { Scenario } from './simulate.js';

const calm: Scenario = { name: 'quiet', pages: 450, weeks: 8 };
const small: Scenario = { ...calm, pages: 50 };
const three = { share: 0.03, largest: 100 };
const growing = { human: 0.02, ai: 0.05 };

/** Ordinary and awkward weeks; `bench/movers.md` explains them. */
export const SCENARIOS: readonly Scenario[] = [
  calm,
  { ...calm, name: 'livelier pages', restlessness: 2 },
  { ...calm, name: 'few views', volume: 0.2 },
  { ...calm, name: 'an AI crawl of one night', crawl: { ago: 0, share: 0.8, visits: 6 } },
  { ...calm, name: 'an AI crawl three weeks ago', crawl: { ago: 3, share: 0.8, visits: 20 } },
  { ...calm, name: 'Christmas', season: { ago: 0, factor: 0.5, spread: 0.15 } },
  { ...calm, name: 'the week after Christmas', season: { ago: 1, factor: 0.5, spread: 0.15 } },
  { ...calm, name: 'growth of 2% and 5% a week', growth: growing },
  { ...calm, name: 'growth of 10% a week', growth: { human: 0.1, ai: 0.1 } },
  { ...calm, name: 'falling by 4% a week', growth: { human: -0.04, ai: -0.04 } },
  { ...calm, name: 'spam on one page', spam: 2 },
  { ...calm, name: 'a tenth renamed this week', renamed: { ago: 0, share: 0.1 } },
  { ...calm, name: 'a tenth renamed last week', renamed: { ago: 1, share: 0.1 } },
  { ...calm, name: 'restructured three weeks ago', renamed: { ago: 3, share: 0.6 } },
  { ...calm, name: 'forty pages launched this week', launched: { ago: 0, pages: 40 } },
  { ...calm, name: 'forty pages launched four weeks ago', launched: { ago: 4, pages: 40 } },
  { ...calm, name: 'steps last week', stepped: { ago: 1, share: 0.05 } },
  { ...calm, name: 'steps four weeks ago', stepped: { ago: 4, share: 0.05 } },
  { ...calm, name: '3 earlier weeks', weeks: 3 },
  { ...calm, name: '4 earlier weeks, growth', weeks: 4, growth: growing },
  { ...calm, name: '9 earlier weeks', weeks: 9 },
  { ...calm, name: 'bots on 2% of the pages, one night', bots: { share: 0.02, nights: 1 } },
  { ...calm, name: 'bots on 2% of the pages, two nights', bots: { share: 0.02, nights: 2 } },
  { ...calm, name: 'three renamed this week', renamed: { ago: 0, ...three } },
  {
    ...calm,
    name: 'three renamed in the middle of this week',
    renamed: { ago: 0, ...three, isMidweek: true },
  },
  {
    ...calm,
    name: 'three renamed in the middle of last week',
    renamed: { ago: 1, ...three, isMidweek: true },
  },
  { ...calm, name: 'heavy tails (t, 3)', tails: 3 },
  { ...calm, name: 'heavy tails (t, 4), lively', tails: 4, restlessness: 2 },
  { ...calm, name: 'sections that move together', sections: { count: 12, noise: 0.15 } },
  { ...calm, name: 'pages with growth of their own', ownGrowth: 0.03 },
  small,
  { ...small, name: 'livelier pages', restlessness: 2 },
  { ...small, name: 'growth', growth: growing },
  { ...small, name: 'Christmas', season: { ago: 0, factor: 0.5, spread: 0.15 } },
  { ...small, name: '3 earlier weeks', weeks: 3 },
  { ...small, name: 'bots on 2% of the pages, one night', bots: { share: 0.02, nights: 1 } },
  { ...small, name: 'heavy tails (t, 3)', tails: 3 },
  { ...calm, name: 'hardly any views', pages: 20, volume: 0.02 },
  { ...calm, pages: 5_000 },
  { ...calm, name: 'livelier pages', pages: 5_000, restlessness: 2 },
  { ...calm, name: 'an AI crawl of one night', pages: 5_000, crawl: { ago: 0, share: 0.8, visits: 6 } },
  { ...calm, name: '3 earlier weeks', pages: 5_000, weeks: 3 },
  { ...calm, pages: 50_000 },
];
