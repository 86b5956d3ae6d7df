import { z } from 'zod';
import { messageOf } from '../errors.js';

/** What is wrong, on one line: a value that does not fit its schema is told by field, not as JSON. */
export const faultOf = (error: unknown): string =>
  error instanceof z.ZodError
    ? error.issues.map(({ path, message }) => [...path, message].join(': ')).join('; ')
    : messageOf(error);
