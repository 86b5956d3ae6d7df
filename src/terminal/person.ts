import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { Writable } from 'node:stream';
import type { Output } from './output.js';

/**
 * A line that somebody types, or that is piped in; undefined at the end of the input. A hidden one
 * is not echoed. Rejects when the signal aborts.
 */
export async function askLine(
  question: string,
  signal: AbortSignal,
  { isHidden = false } = {},
): Promise<string | undefined> {
  const { stdin, stderr } = process;
  const nowhere = new Writable({ write: (_, __, done) => done() });
  const output = isHidden ? nowhere : stderr;
  const lines = createInterface({ input: stdin, output, terminal: stdin.isTTY });
  // Only now: until readline reads keys, the terminal itself echoes them.
  if (isHidden) stderr.write(question);
  // While readline reads keys, Ctrl-C is one of them.
  lines.on('SIGINT', () => process.emit('SIGINT'));
  lines.setPrompt(isHidden ? '' : question);
  lines.prompt();
  // Readline's own `question` ignores a last line that ends without a newline.
  const typed = once(lines, 'line', { signal }).then(([line]) => String(line));
  const ended = once(lines, 'close').then(() => undefined);
  try {
    return await Promise.race([typed, ended]);
  } finally {
    lines.close();
    if (stdin.isTTY && (isHidden || signal.aborted)) stderr.write('\n');
  }
}

/** Opens a file or an address in the browser, which gets only this environment. */
export function openInBrowser(what: string, env: NodeJS.ProcessEnv, output: Output): void {
  const opener =
    process.platform === 'darwin' ? 'open' : process.platform === 'win32' ? 'explorer' : 'xdg-open';
  const child = spawn(opener, [what], { detached: true, stdio: 'ignore', env });
  child.on('error', () =>
    output.note(`Cannot open the browser without ${opener}. Open this yourself: ${what}`),
  );
  // It ends at once if it fails, and may otherwise keep running as the browser.
  const patience = setTimeout(() => child.unref(), 2_000);
  child.on('exit', (code) => {
    clearTimeout(patience);
    // Explorer always exits with 1.
    if (code !== 0 && opener !== 'explorer')
      output.note(`${opener} could not open the browser. Open this yourself: ${what}`);
  });
}
