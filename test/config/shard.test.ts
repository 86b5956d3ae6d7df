import fc from 'fast-check';
import { mkdir, rmdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { type Settings, settingsSchema } from '../../src/config/schema.js';
import {
  isInShard,
  parseShard,
  refuseOtherSplit,
  settingsOfShard,
  type Shard,
  shardName,
  shardOf,
  shardOption,
} from '../../src/config/shard.js';
import { ConfigurationError } from '../../src/errors.js';
import { tempDir } from '../temp-dir.js';

const ids = fc.uniqueArray(fc.string({ minLength: 1 }), { minLength: 1, maxLength: 40 });
const counts = fc.integer({ min: 1, max: 64 });

const shardsOf = (count: number): Shard[] =>
  Array.from({ length: count }, (_, index) => ({ index: index + 1, count }));

const settingsFor = (projects: readonly object[], history = {}, alerts = {}): Settings =>
  settingsSchema.parse({
    ...{ baseUrl: 'https://platform.example.com', projects, alerts },
    history: { requestsPerHour: 'unlimited', ...history },
  });

describe('a shard', () => {
  it.each([
    ['1/1', { index: 1, count: 1 }],
    ['2/8', { index: 2, count: 8 }],
    ['8/8', { index: 8, count: 8 }],
    ['1000/1000', { index: 1000, count: 1000 }],
  ])('is parsed from %s', (text, shard) => {
    expect(parseShard(text)).toEqual(shard);
  });

  it.each(['0/4', '5/4', '4', '', '1/0', '/4', '1/4/2', '-1/4', '1.5/4', ' 1/4', '01/4', '1/99999'])(
    'is not parsed from %j',
    (text) => {
      expect(parseShard(text)).toBeUndefined();
    },
  );

  it('has no project in common with another, and together they have all projects', () => {
    fc.assert(
      fc.property(ids, counts, (projects, count) => {
        const settings = settingsFor(projects.map((id) => ({ id })));
        const split = shardsOf(count).flatMap((shard) => settingsOfShard(settings, shard).projects);
        expect(split.map(({ id }) => id).sort()).toEqual([...projects].sort());
      }),
    );
  });

  it('keeps its projects when others are added or removed, so no history is loaded twice', () => {
    fc.assert(
      fc.property(ids, ids, counts, (some, others, count) => {
        for (const shard of shardsOf(count)) {
          const of = (projects: readonly string[]) =>
            settingsOfShard(settingsFor(projects.map((id) => ({ id }))), shard).projects;
          const all = of([...new Set([...others, ...some])]).map(({ id }) => id);
          expect(of(some).map(({ id }) => id)).toEqual(some.filter((id) => all.includes(id)));
        }
      }),
      { numRuns: 20 },
    );
  });

  it('splits into exactly two when the number doubles, so its file can be copied to both', () => {
    fc.assert(
      fc.property(fc.string({ minLength: 1 }), counts, (project, count) => {
        const before = shardOf(project, count);
        expect([before, before + count]).toContain(shardOf(project, 2 * count));
      }),
    );
  });

  it('has the same projects in every version, so an upgrade never reloads a history', () => {
    const of = (count: number) => ['prj_123', 'acme', 'Ünïcode'].map((id) => shardOf(id, count));
    expect(of(8)).toEqual([8, 6, 1]);
  });

  it('is about the same size as the others', () => {
    const sizes = new Map<number, number>();
    for (let index = 0; index < 8_000; index++) {
      const shard = shardOf(`prj_${index}`, 8);
      sizes.set(shard, (sizes.get(shard) ?? 0) + 1);
    }
    expect(sizes.size).toBe(8);
    for (const size of sizes.values()) expect(Math.abs(size - 1_000)).toBeLessThan(150);
  });

  it('that is not set contains every project', () => {
    expect(isInShard('prj_1', undefined)).toBe(true);
    expect([shardName(undefined), shardOption(undefined)]).toEqual(['all', '']);
    expect(shardOption({ index: 2, count: 8 })).toBe(' --shard 2/8');
  });
});

describe('the request limit of a key', () => {
  it('is never exceeded by all its shards together', () => {
    const keys = fc.constantFrom('KEY_A', 'KEY_B', 'KEY_C');
    const projects = fc.uniqueArray(fc.record({ id: fc.string({ minLength: 1 }), apiKeyEnv: keys }), {
      ...{ minLength: 1, maxLength: 30 },
      selector: ({ id }) => id,
    });
    fc.assert(
      fc.property(projects, counts, fc.integer({ min: 64, max: 1_000 }), (named, count, requestsPerHour) => {
        const settings = settingsFor(named, { requestsPerHour });
        const used = new Map<string, number>();
        for (const shard of shardsOf(count)) {
          const ofShard = settingsOfShard(settings, shard);
          const share = Number(ofShard.history.requestsPerHour);
          expect(share).toBeGreaterThanOrEqual(1);
          for (const key of new Set(ofShard.projects.map(({ apiKeyEnv }) => apiKeyEnv)))
            used.set(key, (used.get(key) ?? 0) + share);
        }
        for (const requests of used.values()) expect(requests).toBeLessThanOrEqual(requestsPerHour);
      }),
    );
  });

  it('is not divided among shards that do not use the key', () => {
    const projects = [
      { id: 'prj_123', apiKeyEnv: 'KEY_A' },
      { id: 'acme', apiKeyEnv: 'KEY_A' },
      { id: 'Ünïcode', apiKeyEnv: 'KEY_B' },
    ];
    const settings = settingsFor(projects, { requestsPerHour: 100 });
    const shareOf = (index: number) => settingsOfShard(settings, { index, count: 8 }).history.requestsPerHour;
    expect([8, 6, 1, 2].map(shareOf)).toEqual([50, 50, 100, 100]);
  });

  it('that leaves less than one request per shard is rejected with an explanation', () => {
    const projects = Array.from({ length: 40 }, (_, index) => ({ id: `prj_${index}` }));
    const settings = settingsFor(projects, { requestsPerHour: 3 });
    const split = () => settingsOfShard(settings, { index: 1, count: 4 });
    expect(split).toThrow(ConfigurationError);
    expect(split).toThrow('history.requestsPerHour: 3 is too few for the 4 shards');
    const enough = settingsFor(projects, { requestsPerHour: 4 });
    expect(settingsOfShard(enough, { index: 1, count: 4 }).history.requestsPerHour).toBe(1);
  });

  it('stays unlimited if it is unlimited', () => {
    const settings = settingsFor([{ id: 'prj_1' }]);
    expect(settingsOfShard(settings, { index: 1, count: 4 }).history.requestsPerHour).toBe('unlimited');
  });
});

it('a data directory that was split is refused with another split or none, and one that was not with any', async () => {
  const directory = await tempDir();
  const refusalOf = (count?: number) =>
    refuseOtherSplit(directory, count === undefined ? undefined : { index: 1, count }).then(
      () => undefined,
      (error: unknown) => (error instanceof ConfigurationError ? error.message : error),
    );
  const shards = join(directory, 'shard-12-of-13');
  for (const name of ['shard-1-of-3x', 'x-shard-1-of-2']) await mkdir(join(directory, name));
  expect([await refusalOf(), await refusalOf(3)]).toEqual([undefined, undefined]);
  await mkdir(shards);
  expect(await refusalOf(13)).toBeUndefined();
  for (const other of [undefined, 4])
    expect(await refusalOf(other)).toContain('contains the histories of 13 shards. Choose one: --shard I/13');
  await rmdir(shards);
  await writeFile(join(directory, 'warehouse.duckdb'), '');
  expect(await refusalOf()).toBeUndefined();
  expect(await refusalOf(13)).toContain('contains one history of all projects');
  await expect(refuseOtherSplit(join(directory, 'nowhere'), undefined)).resolves.toBeUndefined();
});

describe('the ping URL of a shard', () => {
  it('is its own', () => {
    const pingUrl = 'https://ping.example.com/docs-{shard}';
    const settings = settingsFor([{ id: 'prj_1' }], {}, { pingUrl });
    const { alerts } = settingsOfShard(settings, { index: 2, count: 8 });
    expect(alerts.pingUrl).toBe('https://ping.example.com/docs-shard-2-of-8');
  });

  it('must not be shared: a shard that succeeded would hide one that failed', () => {
    const settings = settingsFor([{ id: 'prj_1' }], {}, { pingUrl: 'https://ping.example.com/abc' });
    const split = () => settingsOfShard(settings, { index: 2, count: 8 });
    expect(split).toThrow(ConfigurationError);
    expect(split).toThrow('Add {shard} to it');
    expect(settingsOfShard(settings, { index: 1, count: 1 }).alerts.pingUrl).toMatch(/abc$/);
  });
});
