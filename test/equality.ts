import { expect } from 'vitest';

// Otherwise, files of a few megabytes are compared for seconds, byte by byte. Test files share this module.
expect.addEqualityTesters([
  (one, other) => (Buffer.isBuffer(one) && Buffer.isBuffer(other) ? one.equals(other) : undefined),
]);
