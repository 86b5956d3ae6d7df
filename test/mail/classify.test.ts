import { expect, it } from 'vitest';
import { classify } from '../../src/mail/transport.js';

const CODES = [undefined, 0, 200, 250, 354, 421, 450, 451, 530, 535, 550, 554, 600];

// What each reply means at that stage of the conversation; all others, or none, mean the last.
it.each([
  ['connect', {}, 'not-now'],
  ['login', {}, 'not-now'],
  ['sender', {}, 'not-now'],
  ['recipient', { 530: 'not-now', 535: 'refused', 550: 'refused', 554: 'refused' }, 'not-sent'],
  [
    'message',
    { 450: 'not-sent', 451: 'not-sent', 530: 'refused', 535: 'refused', 550: 'refused', 554: 'refused' },
    'unknown',
  ],
] as const)('a conversation that ended at %s means %j, and otherwise %s', (stage, meanings, otherwise) => {
  for (const code of CODES)
    expect(classify(stage, code), `${code}`).toBe(
      new Map(Object.entries(meanings)).get(`${code}`) ?? otherwise,
    );
});
