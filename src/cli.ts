#!/usr/bin/env node
/** The oldest supported version, as in package.json. */
const [OLDEST_MAJOR, OLDEST_MINOR] = [20, 19];

// Nothing else is imported here: the rest of the program would fail to load in an older version.
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
if (major < OLDEST_MAJOR || (major === OLDEST_MAJOR && minor < OLDEST_MINOR)) {
  const needed = `${OLDEST_MAJOR}.${OLDEST_MINOR}`;
  process.stderr.write(
    `Readership needs Node.js ${needed} or later, and this is ${process.versions.node}. Install a newer version: https://nodejs.org\n`,
  );
  process.exitCode = 2;
} else
  import('./main.js').catch((error: unknown) => {
    // Any other error is a bug, which Node.js shows with its source.
    if (!(error instanceof Error) || !/EMFILE|ENFILE/.test(error.message)) throw error;
    process.stderr.write(
      `Readership could not be loaded: ${error.message}\n` +
        'Too many files are open: raise the limit (ulimit -n, or LimitNOFILE= in systemd), then run the command again.\n',
    );
    process.exitCode = 1;
  });

export {};
