/**
 * Takes the pictures of the README from the sandbox: the weekly email and the web app, in docs/img/. Build first, and
 * commit what it writes: npm run pictures
 */
import { mkdir, mkdtemp, readdir, readFile } from 'node:fs/promises';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import process from 'node:process';
import type { Page } from 'playwright-core';
import PostalMime from 'postal-mime';
import { launchChromium } from '../test/chromium.js';

const ROOT = join(import.meta.dirname, '..');
const CLI = join(ROOT, 'dist/cli.js');
const IMAGES = join(ROOT, 'docs/img');
const EMAIL = { width: 640, height: 1000 };
const APP = { width: 1200, height: 860 };

const workspace = await mkdtemp(join(tmpdir(), 'readership-pictures-'));
const { status } = spawnSync(process.execPath, [CLI, 'run', '--sandbox'], {
  cwd: workspace,
  stdio: 'inherit',
});
if (status !== 0) process.exit(status ?? 1);
await mkdir(IMAGES, { recursive: true });
const browser = await launchChromium();
try {
  await take(EMAIL, 'weekly.png', async (page) => page.setContent(await weeklyEmail()));
  const serve = spawn(process.execPath, [CLI, 'serve', '--sandbox', '--port', '0'], { cwd: workspace });
  try {
    const [address] = (await once(createInterface(serve.stdout), 'line')) as [string];
    await take(APP, 'serve.png', (page) => page.goto(address));
  } finally {
    serve.kill();
  }
} finally {
  await browser.close();
}

/** The HTML of the weekly email in the outbox, with its pictures. */
async function weeklyEmail(): Promise<string> {
  const outbox = join(workspace, 'data/sandbox/outbox');
  const name = (await readdir(outbox)).find((file) => file.startsWith('weekly-'));
  if (name === undefined) throw new Error(`no weekly email in ${outbox}`);
  const { html = '', attachments } = await PostalMime.parse(await readFile(join(outbox, name)));
  return attachments.reduce((page, { contentId = '', mimeType, content }) => {
    const bytes = Buffer.from(content as ArrayBuffer).toString('base64');
    return page.replaceAll(`cid:${contentId.replaceAll(/[<>]/g, '')}`, `data:${mimeType};base64,${bytes}`);
  }, html);
}

async function take(
  viewport: { width: number; height: number },
  name: string,
  show: (page: Page) => Promise<unknown>,
): Promise<void> {
  const page = await browser.newPage({ viewport, deviceScaleFactor: 2 });
  await show(page);
  await page.screenshot({ path: join(IMAGES, name) });
  await page.close();
}
