import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { ContractError } from '../../src/api/errors.js';
import { pageOfViews, pageViewsSchema, plainRows, viewsResponseSchema } from '../../src/api/schema.js';
import { reply } from '../serve.js';
import { clientOf, errorOf, PAGE } from './open-client.js';

const job = async (body: unknown) =>
  (await clientOf((response) => reply(response, 200, body))).client.job('j');
const views = async (body: unknown) =>
  (await clientOf((response) => reply(response, 200, body))).client.views(PAGE);

const COUNTS = { human: 2, ai: 1, total: 3 };
const GOOD = { totals: COUNTS, views: [{ path: '/a', ...COUNTS }], hasMore: false };

describe('what a job may look like', () => {
  it('needs only an id', async () => {
    expect(await job({ id: 'j' })).toEqual({ id: 'j', status: 'unknown' });
  });

  it('counts every other field that is not as documented as absent', async () => {
    const body = { id: 'j', status: 1, source: 'a/b', model: {}, prLink: '', createdAt: 5, archivedAt: true };
    const absent = { source: null, model: null, prLink: null };
    expect(await job(body)).toMatchObject({ id: 'j', status: 'unknown', ...absent });
  });

  it('accepts null for every other field, and any status', async () => {
    const nothing = { source: null, model: null, prLink: null, createdAt: null, archivedAt: null };
    for (const source of [null, { repository: null, ref: null }]) {
      const body = { id: 'j', status: 'pending review', ...nothing, source };
      expect(await job(body)).toEqual(body);
    }
  });

  it('ignores fields that the API does not document', async () => {
    const source = { repository: 'a/b', ref: 'main' };
    const read = await job({ id: 'j', status: 'failed', cost: 3, source: { ...source, host: 'x' } });
    expect({ id: read.id, status: read.status, source: read.source }).toEqual({
      id: 'j',
      status: 'failed',
      source,
    });
  });

  it.each([
    ['no id', { status: 'active' }],
    ['an empty id', { id: '', status: 'active' }],
    ['an id that is not text', { id: 7, status: 'active' }],
    ['a list', []],
    ['null', null],
  ])('refuses %s', async (_, body) => {
    expect(await errorOf(job(body))).toBeInstanceOf(ContractError);
  });
});

describe('what a page of views may look like', () => {
  it('accepts fields that the API does not document, and drops them', async () => {
    const body = {
      ...{ ...GOOD, nextCursor: 'x' },
      totals: { ...COUNTS, bots: 4 },
      views: [{ path: '/a', ...COUNTS, title: 'A' }],
    };
    expect(await views(body)).toEqual(GOOD);
  });

  it('accepts a total that is not human + ai, which is stored as sent', async () => {
    const body = { ...GOOD, totals: { human: 2, ai: 1, total: 9 } };
    expect(await views(body)).toEqual(body);
  });

  it.each([
    ['no totals', { ...GOOD, totals: undefined }],
    ['no views', { ...GOOD, views: undefined }],
    ['views that are null', { ...GOOD, views: null }],
    ['views that are an object', { ...GOOD, views: { first: GOOD.views[0] } }],
    ['rows that are null', { ...GOOD, views: [null] }],
    ['a path that is a number', { ...GOOD, views: [{ path: 7, ...COUNTS }] }],
    ['no hasMore', { ...GOOD, hasMore: undefined }],
    ['hasMore that is text', { ...GOOD, hasMore: 'false' }],
    ['a missing total', { ...GOOD, totals: { human: 2, ai: 1 } }],
    ['a negative total', { ...GOOD, totals: { ...COUNTS, ai: -1 } }],
    ['a negative count', { ...GOOD, views: [{ path: '/a', ...COUNTS, human: -1 }] }],
    ['a fraction of a view', { ...GOOD, views: [{ path: '/a', ...COUNTS, human: 0.5 }] }],
    ['a count too large to hold exactly', { ...GOOD, views: [{ path: '/a', ...COUNTS, human: 2 ** 53 }] }],
    ['a count that is text', { ...GOOD, views: [{ path: '/a', ...COUNTS, human: '2' }] }],
    ['a row without a path', { ...GOOD, views: [COUNTS] }],
    ['a list', []],
  ])('refuses %s, and names the field', async (_, body) => {
    const error = await errorOf(views(body));
    expect(error).toBeInstanceOf(ContractError);
    expect(error.message).toMatch(/does not match the documented API: (totals|views|hasMore|Invalid)/);
  });
});

describe('the plain check of rows', () => {
  const VALUES = [
    ...[undefined, null, '', '/a', '/ü?q=1', '/\\ud800', '\ud800', 'x'.repeat(70_000)],
    ...[true, [], {}, -0, 0, 7, -1, 0.5, 2 ** 53 - 1, 2 ** 53, Number.NaN, Infinity, '7', 7n],
  ];
  const FIELDS = ['path', 'human', 'ai', 'total', 'title'] as const;

  it('accepts and returns what the schema does, for any value of any field', () => {
    const rows = FIELDS.flatMap((field) =>
      VALUES.map((value) => ({ path: '/a', ...COUNTS, [field]: value })),
    );
    for (const all of [...rows.map((row) => [row]), ...VALUES.map((value) => [value]), ...VALUES, [], rows])
      expect(plainRows(all)).toEqual(z.array(pageViewsSchema).safeParse(all).data);
  });

  it('accepts and returns what the schema does, for any value of any field of a page', () => {
    const pages = ['totals', 'views', 'hasMore'].flatMap((field) =>
      [...VALUES, false, {}, [COUNTS]].map((value) => ({ ...GOOD, [field]: value })),
    );
    const totals = FIELDS.flatMap((field) =>
      VALUES.map((value) => ({ ...GOOD, totals: { ...COUNTS, [field]: value } })),
    );
    for (const page of [...VALUES, GOOD, ...pages, ...totals])
      expect(pageOfViews.safeParse(page)).toEqual(viewsResponseSchema.safeParse(page));
  });

  it('leaves it to the schema to say what is wrong, and where, if no row can be read', async () => {
    const body = { ...GOOD, views: [{ path: '/b', ...COUNTS, ai: -1 }] };
    expect(String(await errorOf(views(body)))).toMatch(/views\.0\.ai: Too small/);
  });

  it('names the rows that cannot be read, and returns the others', () => {
    const rows = [null, ...GOOD.views, { ...COUNTS, path: null, human: 1.5 }];
    expect(viewsResponseSchema.parse({ ...GOOD, views: rows })).toEqual({
      ...GOOD,
      unreadable: [
        { index: 0, why: expect.stringMatching(/expected object, received null/) as string },
        { index: 2, why: expect.stringMatching(/human: .+expected int.+path: .+received null/) as string },
      ],
    });
  });
});
