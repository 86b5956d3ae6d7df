// A report is written once as text. The part that chats get, and the links in it, are marked with characters that no path
// has, because a path is shown without control characters.

const [CHAT_BEGINS, CHAT_ENDS] = ['\u0001', '\u0004'];
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
  text.replaceAll(new RegExp(`[${CHAT_BEGINS}${CHAT_ENDS}]`, 'g'), '').replaceAll(LINK, '$2');

/** A chat message as the words between its links, and its links. */
export function chatParts(message: string): { readonly words: string; readonly href: string | null }[] {
  const parts: { words: string; href: string | null }[] = [];
  let done = 0;
  for (const { 0: whole, 1: href = '', 2: words = '', index } of message.matchAll(LINK)) {
    parts.push({ words: message.slice(done, index), href: null }, { words, href });
    done = index + whole.length;
  }
  // Where a message was cut, its last link may be without its end.
  const [words = '', half] = message.slice(done).split(LINK_BEGINS);
  parts.push({ words: half === undefined ? words : `${words}…`, href: null });
  return parts.filter(({ words }) => words !== '');
}
