import { z } from 'zod';
import { thousands } from './numbers.js';

/** Who views pages, in the order in which sentences name them. */
export const AUDIENCES = ['human', 'ai'] as const;
export const audienceColumn = z.enum(AUDIENCES);
export type Audience = z.infer<typeof audienceColumn>;

export const otherThan = (audience: Audience): Audience => (audience === 'ai' ? 'human' : 'ai');

/** `human` or `AI`, within a sentence. */
export const audienceWord = (audience: Audience): string => (audience === 'ai' ? 'AI' : 'human');

/** `Human` or `AI`. */
export const audienceName = (audience: Audience): string => (audience === 'ai' ? 'AI' : 'Human');

/** `1 human view`, `18,190 AI views`. */
export const viewsBy = (audience: Audience, count: number): string =>
  `${thousands(count)} ${audienceWord(audience)} view${count === 1 ? '' : 's'}`;
