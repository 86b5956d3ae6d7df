import { UTCDate } from '@date-fns/utc';
import { format } from 'date-fns';

/** A moment to wait for, in whole minutes: `21 Nov 2026 at 01:36 UTC`, never earlier than it is. */
export const nextMinute = (instant: Date): string =>
  format(new UTCDate(Math.ceil(instant.getTime() / 60_000) * 60_000), "d MMM yyyy 'at' HH:mm 'UTC'");
