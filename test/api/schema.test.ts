import { describe, expect, it } from 'vitest';
import { ContractError } from '../../src/api/errors.js';
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
    expect(await job(body)).toMatchObject({
      id: 'j',
      status: 'unknown',
      source: null,
      model: null,
      prLink: null,
    });
  });

  it('accepts null for every other field', async () => {
    const body = {
      ...{ id: 'j', status: 'active', source: null, model: null },
      ...{ prLink: null, createdAt: null, archivedAt: null },
    };
    expect(await job(body)).toEqual(body);
  });

  it('accepts null inside the source', async () => {
    const body = { id: 'j', status: 'active', source: { repository: null, ref: null } };
    expect(await job(body)).toEqual(body);
  });

  it('keeps a status that the API does not document', async () => {
    expect(await job({ id: 'j', status: 'pending review' })).toMatchObject({ status: 'pending review' });
  });

  it('ignores fields that the API does not document', async () => {
    const { id, status, source } = await job({
      ...{ id: 'j', status: 'failed', cost: 3 },
      source: { repository: 'a/b', ref: 'main', host: 'x' },
    });
    expect({ id, status, source }).toEqual({
      ...{ id: 'j', status: 'failed' },
      source: { repository: 'a/b', ref: 'main' },
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
