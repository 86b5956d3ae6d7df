import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { percent, signedPercent } from '../../src/format/numbers.js';
import { fillSiteWithGaps } from '../reports/history.js';
import { tempDir } from '../temp-dir.js';
import { storeFilled, serveSite, type Site } from './site.js';

const SITES = Array.from({ length: Number(process.env['SITES'] ?? '20') }, (_, index) => index + 1);
const RANGES = ['range=13w', 'range=4w&against=year', 'range=all', 'from=2026-03-01&to=2026-09-15'];

let site: Site;
let directory: string;
beforeAll(async () => {
  directory = await tempDir();
  const projects = SITES.map((seed) => ({ id: `prj_${seed}` }));
  const settings = { baseUrl: 'https://platform.example.com', projects };
  await writeFile(join(directory, 'readership.yaml'), JSON.stringify(settings));
  await storeFilled(directory, async (history) => {
    for (const seed of SITES) await fillSiteWithGaps(history, seed, `prj_${seed}`);
  });
  site = await serveSite(directory);
});

/** A number as pages write it; undefined for a dash, which stands for what is not loaded. */
const numberOf = (text = '–'): number | undefined =>
  text === '–' ? undefined : Number(text.replaceAll(',', ''));

/** The figures at the top of a page, of people and AI. */
function figuresOf(html: string) {
  return ['human', 'ai'].map((audience) => {
    const [, views, beside = ''] =
      new RegExp(`<dd class="value ${audience}">([^<]*)</dd>(?:<dd class="beside">([^]*?)</dd>)?`).exec(
        html,
      ) ?? [];
    return { views: numberOf(views), ...changeOf(beside) };
  });
}

const changeOf = (html: string) => ({
  change: /class="change[^>]*>([^<]*)</.exec(html)?.[1],
  expected: /title="([\d,]+ to [\d,]+)/.exec(html)?.[1],
});

/** The rows of a ranking: a page with its figures. */
const rankingOf = (html: string) =>
  new Map(
    [
      ...html.matchAll(/<th scope="row" class="path">(?:<input[^>]*>)?<a [^>]*title="([^"]*)".*?<\/tr>/gs),
    ].map(([row, path = '']) => [
      path,
      [...row.matchAll(/<td class="(?:human|ai)">(.*?)<\/td>/gs)].map(([, cell = '']) => ({
        views: numberOf(/<span>([\d,]+)<\/span>/.exec(cell)?.[1]),
        ...changeOf(cell),
      })),
    ]),
  );

const csvRow = z.record(z.string(), z.string());
const csvOf = (text: string) => {
  const [head = '', ...lines] = text.trim().split('\n');
  const names = head.split(',');
  const rows = lines.map((line) =>
    csvRow.parse(Object.fromEntries(line.split(',').map((cell, at) => [names[at], cell]))),
  );
  return new Map(rows.map((row) => [row['path'], row]));
};

/** The sums of the table under a chart. */
function sumsOf(html: string): (number | undefined)[] {
  const cells = [
    ...html.matchAll(
      /<tr><th scope="row"><a[^>]*>[^<]*<\/a><\/th><td class="number">([^<]*)<\/td><td class="number">([^<]*)<\/td>/g,
    ),
  ];
  return [1, 2].map((column) => {
    const numbers = cells.map((row) => numberOf(row[column])).filter((value) => value !== undefined);
    return numbers.length === 0 ? undefined : numbers.reduce((sum, value) => sum + value, 0);
  });
}

describe('a number is the same on every page', () => {
  it.each(SITES)('of site %i', async (seed) => {
    const project = `project=prj_${seed}`;
    const range = RANGES[seed % RANGES.length];
    const [overview, pages, csv] = await Promise.all(
      ['/', '/pages', '/pages.csv'].map((path) => site.page(`${path}?${project}&${range}`)),
    );
    // The views of a day, a week or a month add up to the total, of which AI has its share.
    const [people = 0, machines = 0] = figuresOf(overview ?? '').map(({ views }) => views);
    expect(figuresOf(overview ?? '').map(({ views }) => views)).toEqual(sumsOf(overview ?? ''));
    const share = /AI share<\/dt><dd class="value">([^<]*)</.exec(overview ?? '')?.[1];
    if (share !== '–') expect(share).toBe(percent(machines / (people + machines)));
    const ranked = rankingOf(pages ?? '');
    const listed = csvOf(csv ?? '');
    for (const [path, figures] of rankingOf(overview ?? '')) expect(ranked.get(path), path).toEqual(figures);
    expect(ranked.size === 0).toBe(listed.size === 0);
    for (const [path, [human, ai]] of ranked) {
      const row = listed.get(path);
      for (const [figure, audience] of [
        [human, 'human'],
        [ai, 'ai'],
      ] as const) {
        expect(figure?.views, path).toBe(numberOf(row?.[audience]));
        const [low, high] = [row?.[`${audience}_low`], row?.[`${audience}_high`]];
        const expected = low
          ? `${Number(low).toLocaleString('en-US')} to ${Number(high).toLocaleString('en-US')}`
          : undefined;
        expect(figure?.expected, `${path} ${audience}`).toBe(expected);
        const change = row?.[`${audience}_change`];
        if (row?.['is_new'] === 'true') expect(figure?.change).toBe('new');
        else if (change) expect(figure?.change).toBe(signedPercent(Number(change)));
      }
    }
    for (const path of [...ranked.keys()].slice(0, 1)) {
      const page = await site.page(`/page?${project}&${range}&path=${encodeURIComponent(path)}`);
      const shown = figuresOf(page);
      const views = shown.map((figure) => figure.views);
      expect(views, path).toEqual(sumsOf(page));
      for (const [index, figure] of (ranked.get(path) ?? []).entries())
        if (shown[index]?.change !== undefined) expect(shown[index], path).toEqual(figure);
        else expect(['–', 'new', undefined]).toContain(figure.change);
    }
  });
});
