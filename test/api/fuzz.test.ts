import fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import { ContractError, RefusedError, TryLaterError, UnknownOutcomeError } from '../../src/api/errors.js';
import type { Client } from '../../src/api/client.js';
import { agentJobSchema, viewsResponseSchema } from '../../src/api/schema.js';
import { Transport } from '../../src/api/transport.js';
import { tries } from '../fuzz.js';
import { serve } from '../serve.js';
import { KEY, openClient, PAGE } from './open-client.js';
import { ATTEMPT } from '../attempt.js';

interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
}

const SECOND_LATER = 'Wed, 18 Nov 2026 05:00:01 GMT';
const COUNT = fc.oneof(
  fc.nat(1_000),
  fc.double(),
  fc.constantFrom(-1, 0.5, 2 ** 53, 2 ** 53 - 1, 1e308, '7', null, true, [], {}),
);
const WORD = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 12 }),
  fc.constantFrom('__proto__', 'constructor', 'toString', '/a', KEY, `Bearer ${KEY}`, `x${KEY}y`),
  COUNT,
);
const COUNTS = { human: COUNT, ai: COUNT, total: COUNT };
const VIEWS = fc.record(
  {
    totals: fc.oneof(fc.record(COUNTS, { requiredKeys: [] }), WORD),
    views: fc.oneof(
      fc.array(fc.record({ path: WORD, ...COUNTS }, { requiredKeys: ['path'] }), { maxLength: 3 }),
      WORD,
    ),
    hasMore: fc.oneof(fc.boolean(), WORD),
  },
  { requiredKeys: [] },
);
const JOB = fc.record(
  {
    ...{ id: WORD, status: WORD, prLink: WORD, model: WORD, createdAt: WORD, archivedAt: WORD },
    source: fc.oneof(fc.record({ repository: WORD, ref: WORD }, { requiredKeys: [] }), WORD),
  },
  { requiredKeys: ['id', 'status'] },
);
const ERROR = fc.record(
  { error: WORD, message: WORD, details: fc.oneof(WORD, fc.array(fc.record({ message: WORD }))) },
  { requiredKeys: [] },
);

/** A prototype's keys, and a number that no double holds. */
const MORE = [
  ...['', '"__proto__": {"polluted": 1},', '"constructor": {"prototype": {"polluted": 1}},'],
  '"x": 1e999,',
];
const anyJson = fc
  .tuple(fc.oneof(VIEWS, JOB, ERROR, fc.jsonValue()), fc.constantFrom(...MORE))
  .map(([value, more]) => JSON.stringify(value).replace(/^\{(?="|$)/, `{${more}`));

const anyText = fc.oneof(
  { arbitrary: anyJson, weight: 5 },
  { arbitrary: fc.string({ unit: 'binary' }), weight: 1 },
  {
    arbitrary: fc.constantFrom(
      `<html><a href="/login?key=${encodeURIComponent(KEY)}">${KEY}</a>`,
      '['.repeat(100_000),
      `{"totals":${'{"a":'.repeat(10_000)}1${'}'.repeat(10_000)}}`,
    ),
    weight: 1,
  },
);

/** Cut off, or with changed bytes, which make UTF-8 invalid, and JSON almost valid. */
const anyBody = fc
  .tuple(
    anyText,
    fc.option(fc.double({ min: 0, max: 1, noNaN: true }), { freq: 3 }),
    fc.array(fc.tuple(fc.nat(400), fc.nat(255)), { maxLength: 2 }),
  )
  .map(([text, cutAt, flips]) => {
    const bytes = Buffer.from(text);
    for (const [at, byte] of flips) if (at < bytes.length) bytes[at] = byte;
    return bytes.subarray(0, Math.floor(bytes.length * (cutAt ?? 1)));
  });

const anyAnswer: fc.Arbitrary<Answer> = fc.record({
  status: fc.oneof(
    { arbitrary: fc.constantFrom(200, 201, 202), weight: 4 },
    {
      arbitrary: fc.constantFrom(300, 307, 400, 401, 402, 403, 404, 409, 418, 429, 500, 502, 503),
      weight: 1,
    },
  ),
  headers: fc.record(
    {
      'retry-after': fc.constantFrom('0', '5', '99999999999', '-1', 'soon', SECOND_LATER, KEY),
      'content-type': fc.constantFrom('application/json', 'text/html; charset=latin1', KEY),
      location: fc.constant(`/?key=${KEY}`),
      'www-authenticate': fc.constant(`Bearer error="${KEY}"`),
    },
    { requiredKeys: [] },
  ),
  body: anyBody,
});

const DOCUMENTED = [ContractError, RefusedError, TryLaterError, UnknownOutcomeError];
const FORMS = [KEY, encodeURIComponent(KEY)];

describe('any answer from a server', () => {
  const transport = new Transport();
  let baseUrl: string;
  let answer: Answer;
  beforeAll(async () => {
    const server = await serve((_, response) =>
      response.writeHead(answer.status, answer.headers).end(answer.body),
    );
    ({ baseUrl } = server);
    return () => transport.close();
  });

  /** The result of a request with this answer. It has a new client, because after a 429 no client sends another. */
  async function came<Value>(anyOne: Answer, ask: (client: Client) => Promise<Value>) {
    answer = anyOne;
    const client = openClient(baseUrl, { retries: { retries: 0, minDelayMs: 1, maxDelayMs: 1 }, transport });
    try {
      return { value: await ask(client) };
    } catch (error) {
      return { error };
    }
  }

  const CREATE = (client: Client) => client.createJob('Improve /a', ATTEMPT);
  const SEND = (client: Client) => client.sendMessage('job_1', 'Shorter', ATTEMPT);
  const REQUESTS = [
    ['a page of views', viewsResponseSchema, (client: Client) => client.views(PAGE)],
    ['a job', agentJobSchema, (client: Client) => client.job('job_1')],
    ['a created job', agentJobSchema, CREATE],
    ['a job with a message', agentJobSchema, SEND],
  ] as const;

  it.each(REQUESTS)('%s fits its schema or is a documented error without the key', async (_, schema, ask) => {
    const property = fc.asyncProperty(anyAnswer, async (anyOne) => {
      const end = await came<unknown>(anyOne, ask);
      const text = 'error' in end ? String(end.error) : JSON.stringify(end.value);
      for (const form of FORMS) expect(text).not.toContain(form);
      expect({}).not.toHaveProperty('polluted');
      if ('value' in end) expect(schema.parse(end.value)).toEqual(end.value);
      else {
        expect(DOCUMENTED.map((documented) => end.error instanceof documented)).toContain(true);
        // eslint-disable-next-line no-control-regex
        expect(text).not.toMatch(/[\u0000-\u001f\u007f-\u009f]/);
      }
    });
    await fc.assert(property, tries(150));
  });
});
