import { spawn } from 'node:child_process';
import type { Runtime } from '../app/workspace.js';

/** Opens a file or an address in the browser. */
export function openInBrowser(what: string, { output }: Pick<Runtime, 'output'>): void {
  const opener =
    process.platform === 'darwin' ? 'open' : process.platform === 'win32' ? 'explorer' : 'xdg-open';
  const child = spawn(opener, [what], { detached: true, stdio: 'ignore' });
  child.on('error', () => {
    output.note(`There is no ${opener} here to open the browser with; open it yourself: ${what}`);
  });
  // It ends at once if it fails, and may go on as the browser if not.
  const patience = setTimeout(() => {
    child.unref();
  }, 2_000);
  child.on('exit', (code) => {
    clearTimeout(patience);
    // Explorer always says 1.
    if (code !== 0 && opener !== 'explorer')
      output.note(`${opener} could not open the browser; open it yourself: ${what}`);
  });
}
