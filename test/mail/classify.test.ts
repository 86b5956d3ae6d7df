import { describe, expect, it } from 'vitest';
import { CLASSIFICATION, classify } from '../../src/mail/transport.js';

// One case per row of the table, in its order, and one that matches none: the step of the conversation, the server's
// last reply, and what it means.
const CASES = [
  ['connect', 554, 'not-sent'],
  ['login', 535, 'not-sent'],
  ['envelope', 530, 'not-sent'],
  ['envelope', 550, 'refused'],
  ['envelope', 451, 'not-sent'],
  ['message', 421, 'unknown'],
  ['message', 451, 'not-sent'],
  ['message', 554, 'refused'],
  ['message', undefined, 'unknown'],
] as const;

describe('a failed conversation', () => {
  it.each(CASES)('while at %s, with the reply %s, means: %s', (stage, code, kind) => {
    expect(classify(stage, code)).toBe(kind);
  });

  it('has a case here for every row of the table', () => {
    expect(CASES.slice(0, -1).map(([stage, , kind]) => [stage, kind])).toEqual(
      CLASSIFICATION.map(({ stage, kind }) => [stage, kind]),
    );
  });

  it('never counts as not delivered when a server is silent after receiving the email', () => {
    for (const code of [undefined, 0, 200, 250, 354, 421, 600])
      expect(classify('message', code)).toBe('unknown');
  });

  it('always counts as not delivered before the email was sent', () => {
    for (const stage of ['connect', 'login', 'envelope'] as const)
      for (const code of [undefined, 0, 200, 250, 354, 421, 450, 530, 550])
        expect(classify(stage, code)).not.toBe('unknown');
  });
});
