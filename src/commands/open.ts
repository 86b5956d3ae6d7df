import { spawn } from 'node:child_process';
import type { Runtime } from '../app/workspace.js';

/** Opens a file or an address in the browser. */
export function openInBrowser(what: string, { output }: Pick<Runtime, 'output'>): void {
  const opener =
    process.platform === 'darwin' ? 'open' : process.platform === 'win32' ? 'explorer' : 'xdg-open';
  const child = spawn(opener, [what], { detached: true, stdio: 'ignore' });
  child.on('error', () => {
    output.note(`Cannot open the browser without ${opener}. Open this yourself: ${what}`);
  });
  // It ends at once if it fails, and may otherwise keep running as the browser.
  const patience = setTimeout(() => {
    child.unref();
  }, 2_000);
  child.on('exit', (code) => {
    clearTimeout(patience);
    // Explorer always exits with 1.
    if (code !== 0 && opener !== 'explorer')
      output.note(`${opener} could not open the browser. Open this yourself: ${what}`);
  });
}
