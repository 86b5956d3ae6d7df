import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { Writable } from 'node:stream';

/**
 * A line that somebody types, or that is piped in; undefined at the end of the input. A hidden one is not echoed.
 * Rejects when the signal aborts.
 */
export async function askLine(
  question: string,
  signal: AbortSignal,
  { isHidden = false } = {},
): Promise<string | undefined> {
  const { stdin, stderr } = process;
  const nowhere = new Writable({
    write: (_, __, done) => {
      done();
    },
  });
  const output = isHidden ? nowhere : stderr;
  const lines = createInterface({ input: stdin, output, terminal: stdin.isTTY });
  // Only now, since until readline reads keys, the terminal itself shows them.
  if (isHidden) stderr.write(question);
  // While readline reads keys, Ctrl-C is one of them.
  lines.on('SIGINT', () => process.kill(process.pid, 'SIGINT'));
  lines.setPrompt(isHidden ? '' : question);
  lines.prompt();
  // Not its own `question`, which ignores a last line that ends without a newline.
  const typed = once(lines, 'line', { signal }).then(([line]) => String(line));
  const ended = once(lines, 'close').then(() => undefined);
  try {
    return await Promise.race([typed, ended]);
  } finally {
    lines.close();
    if (stdin.isTTY && (isHidden || signal.aborted)) stderr.write('\n');
  }
}
