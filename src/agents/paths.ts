const MAX_LENGTH = 200;

/** Letters, digits and the marks that documentation sites use in paths; no spaces, quotes, braces or percent codes. */
const PLAIN_PATH = /^(?:\/[A-Za-z0-9][A-Za-z0-9._~-]*)*\/?$/;

/**
 * Whether a path is a plain URL path of sane length. Anyone can visit a made-up address often enough to have it
 * counted, so a path is untrusted text: only a plain one may become part of a prompt.
 */
export const isPlainPath = (path: string): boolean =>
  path.startsWith('/') && path.length <= MAX_LENGTH && PLAIN_PATH.test(path);
