import { accessSync, constants } from 'node:fs';
import { chromium, type Browser } from 'playwright-core';
import { afterTest } from './cleanup.js';

const USUAL_PLACES = [
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
  '/snap/bin/chromium',
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
  '/Applications/Chromium.app/Contents/MacOS/Chromium',
];

const isProgram = (file: string): boolean => {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
};

/**
 * The installed Chromium: `CHROMIUM` in the environment, or one in a usual place. Tests that need it are skipped if
 * there is none, except in CI, where a missing browser would silently leave the pages untested.
 */
const chromiumFile: string | undefined = [process.env['CHROMIUM'] ?? '', ...USUAL_PLACES].find(isProgram);

export const skipWithoutChromium = chromiumFile === undefined && process.env['CI'] === undefined;

/** An empty page, closed after the test. */
export async function newPage(browser: Browser, width: number, colorScheme: 'light' | 'dark' = 'light') {
  const page = await browser.newPage({ viewport: { width, height: 900 }, colorScheme });
  afterTest(() => page.close());
  return page;
}

/** Starts the browser without its own background requests, so that only the page's requests are seen. */
export function launchChromium(): Promise<Browser> {
  if (chromiumFile === undefined) {
    throw new Error(
      'No Chromium found: install it (apt-get install chromium), or set CHROMIUM to its executable.',
    );
  }
  return chromium.launch({
    executablePath: chromiumFile,
    args: ['--no-sandbox', '--disable-gpu', '--disable-background-networking', '--disable-quic'],
  });
}
