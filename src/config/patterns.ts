import { z } from 'zod';

/** What only addresses, and only regular expressions, contain. A dot and an asterisk may be the ending of a path: `/openapi.*`. */
const ADDRESS = /^[a-z][a-z0-9+.-]*:\/\/[^/]*/i;
const EXPRESSION = /^\^|\$$|(?:^|\/)\.[*+]|\\/;

/** Pages are named without the ending of their address. */
const ENDING = /(?<=[*?\]})][^/]*)\.(?:html|mdx?)$/;

/** What to write instead of a text that, as a pattern, matches no page, and why; undefined if it can match one. */
function misread(text: string): string | undefined {
  if (text.startsWith('!')) return 'begins with !, but a pattern can only name pages, not all others';
  if (ENDING.test(text))
    return `matches no page, because pages are named without ${ENDING.exec(text)?.[0] ?? 'an ending'}: write ${text.replace(ENDING, '')}`;
  if (text.startsWith('/') && !EXPRESSION.test(text)) return undefined;
  const why = EXPRESSION.test(text) ? 'this is a regular expression' : 'paths begin with /';
  return `matches no page, because ${why}: write ${meantPattern(text)}`;
}

/** The pattern that an address, a regular expression or part of a path was meant to be. */
function meantPattern(text: string): string {
  const isBeginning = text.startsWith('^') && !text.endsWith('$');
  const path = text
    .replace(ADDRESS, '')
    .replace(/^\^|\$$/g, '')
    .replace(/\\(.)/g, '$1')
    .replace(/(^|\/)\.[*+]/g, '$1**');
  const whole = isBeginning && !path.endsWith('*') ? path.replace(/\/*$/, '/**') : path;
  if (whole.startsWith('/')) return whole;
  return /^\*(?!\*)/.test(whole) ? `/**/${whole}` : `/${whole}`;
}

/** A pattern of paths, such as `/sdks/**`. */
export const pathPattern = z
  .string()
  .min(1)
  .superRefine((text, context) => {
    const problem = misread(text);
    if (problem !== undefined) context.addIssue(problem);
  });
