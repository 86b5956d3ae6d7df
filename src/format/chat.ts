import { thousands } from './numbers.js';
import { shortened } from './text.js';

// A report is written once as text. The part that chats get, its items and the links in it are marked with characters that
// no path has, because a path is shown without control characters.

const [CHAT_BEGINS, CHAT_ENDS] = ['\u0001', '\u0004'];
/** Before each item of a list, which a chat gets whole or not at all. */
export const ITEM = '\u0005';
const [LINK_BEGINS, LINK_SAYS, LINK_ENDS] = ['\u0002', '\u001f', '\u0003'];
const LINK = new RegExp(`${LINK_BEGINS}([^${LINK_SAYS}]*)${LINK_SAYS}([^${LINK_ENDS}]*)${LINK_ENDS}`, 'g');

/** The part of a text that chats get. */
export const markedForChats = (text: string): string => CHAT_BEGINS + text + CHAT_ENDS;

/** Words of a text that lead somewhere in a chat. */
export const chatLink = (href: string, words: string): string =>
  LINK_BEGINS + href + LINK_SAYS + words + LINK_ENDS;

/** The message for chats in a marked text, with its links: the part marked for chats, or all of it. */
export function chatMessageIn(text: string): string {
  const [, message = text] = text.split(new RegExp(`[${CHAT_BEGINS}${CHAT_ENDS}]`));
  return message.trim().replaceAll(/\n{3,}/g, '\n\n');
}

/** A marked text without its marks. */
export const plainText = (text: string): string =>
  text.replaceAll(new RegExp(`[${CHAT_BEGINS}${CHAT_ENDS}${ITEM}]`, 'g'), '').replaceAll(LINK, '$2');

/** A chat message as the words between its links, and its links. */
export function chatParts(message: string): { readonly words: string; readonly href: string | null }[] {
  const parts: { words: string; href: string | null }[] = [];
  let done = 0;
  for (const { 0: whole, 1: href = '', 2: words = '', index } of message.matchAll(LINK)) {
    parts.push({ words: message.slice(done, index), href: null }, { words, href });
    done = index + whole.length;
  }
  parts.push({ words: message.slice(done), href: null });
  return parts
    .map(({ words, href }) => ({ words: words.replaceAll(ITEM, ''), href }))
    .filter(({ words }) => words !== '');
}

/**
 * A chat message that is no longer than `longest`, as `lengthOf` counts: its first items, or its first lines if none are
 * marked, and then how many more there are, and where.
 */
export function fittingMessage(
  message: string,
  longest: number,
  lengthOf: (text: string) => number,
  link: string | null,
): string {
  if (lengthOf(message) <= longest) return message;
  const isOfItems = message.includes(ITEM);
  const pieces = isOfItems ? message.split(ITEM) : message.split(/(?<=\n)/);
  const ending = (left: number) =>
    `${isOfItems ? `${thousands(left)} more` : 'More'}${link === null ? '' : `: ${link}`}`;
  const room = longest - lengthOf(`\n\n${ending(pieces.length)}`);
  let [kept = ''] = pieces;
  // Only a text with a very long line is cut within it.
  if (lengthOf(kept) > room)
    return `${shortened(plainText(kept), room, lengthOf)}\n\n${ending(pieces.length - 1)}`;
  let count = 1;
  for (const piece of pieces.slice(1)) {
    if (lengthOf(kept + piece) > room) break;
    kept += piece;
    count += 1;
  }
  return `${kept.trimEnd()}\n\n${ending(pieces.length - count)}`;
}
