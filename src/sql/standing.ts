/**
 * How far some SQL has come: `blank` is nothing but space, comments and semicolons; `complete` ends with the semicolon
 * of a statement; `open` waits for more.
 */
export type Standing = 'blank' | 'open' | 'complete';

/** Quotes that are closed, what opens one that is not, names, since those may hold a dollar, and any other character. */
const TOKEN = new RegExp(
  [
    String.raw`\s+|--[^\n\r]*|\/\*`,
    String.raw`e'[^'\\]*(?:(?:\\[^]|'')[^'\\]*)*'(?!')|e'`,
    String.raw`'[^']*(?:''[^']*)*'(?!')|"[^"]*(?:""[^"]*)*"(?!")`,
    String.raw`(\$(?:[a-z_\x80-\uffff][\w\x80-\uffff]*)?\$)(?:[^]*?\1)?`,
    String.raw`[a-z_\x80-\uffff][\w$\x80-\uffff]*|[^]`,
  ].join('|'),
  'giy',
);

const UNCLOSED = /^(?:e?'|"|\$[^$]*\$)$/i;
const SPACE = /^(?:\s|--)/;

/** Reads SQL as DuckDB does, comments inside comments included. */
export function standingOf(sql: string): Standing {
  let standing: Standing = 'blank';
  TOKEN.lastIndex = 0;
  for (let match = TOKEN.exec(sql); match !== null; match = TOKEN.exec(sql)) {
    const [token] = match;
    if (token === '/*') {
      const end = endOfComment(sql, TOKEN.lastIndex);
      if (end === undefined) return 'open';
      TOKEN.lastIndex = end;
    } else if (UNCLOSED.test(token)) return 'open';
    else if (token === ';') standing = standing === 'blank' ? 'blank' : 'complete';
    else if (!SPACE.test(token)) standing = 'open';
  }
  return standing;
}

/** Where the comment ends that has just begun before `from`; undefined when it does not. */
function endOfComment(sql: string, from: number): number | undefined {
  let depth = 1;
  for (const { 0: mark, index } of sql.slice(from).matchAll(/\/\*|\*\//g)) {
    depth += mark === '/*' ? 1 : -1;
    if (depth === 0) return from + index + mark.length;
  }
  return undefined;
}
