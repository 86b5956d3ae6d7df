/** Control characters: a page's path must not be able to steer the terminal. Line feeds are ours. */
const CONTROL =
  // eslint-disable-next-line no-control-regex
  /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/** Untrusted text as it may stand on a terminal. */
export const plainText = (text: string): string => text.replaceAll(CONTROL, '�');

/** As `plainText`, where a second line would look like one of ours. */
export const plainLine = (text: string): string => plainText(text).replaceAll('\n', ' ');
