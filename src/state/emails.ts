import { z } from 'zod';
import { readSql, timestampColumn } from '../columns.js';
import type { State } from './state.js';

const statement = (name: string) => readSql(import.meta.url, `statements/${name}.sql`);
const EMAILS = 'SELECT * FROM emails ORDER BY project, report, period, recipient';
const EMAILS_OF_PROJECT =
  'SELECT * FROM emails WHERE report = $report AND project = $project ORDER BY period, recipient';
const EMAILS_OF_PERIOD = statement('emails-of-period');
const EMAIL_OF_ATTEMPT = 'SELECT * FROM emails WHERE attempt = $attempt';
const STORE_EMAIL = statement('store-email');
const REMOVE_EMAIL = statement('remove-email');

/**
 * `sending` is committed before anything is sent; then `sent`, `written` (to a file, because there is no mail server),
 * `waiting` (did not arrive; retried at `next_attempt_at`), `failed` (refused permanently, or given up) or `unknown` (it
 * may have arrived).
 */
const DELIVERY_STATES = ['sending', 'sent', 'written', 'waiting', 'failed', 'unknown'] as const;

/** How a message is sent: by email, to a file, or to a kind of channel. */
const VIAS = ['smtp', 'outbox', 'slack', 'teams', 'webhook'] as const;

export const deliveryKey = z.object({
  report: z.string(),
  project: z.string(),
  /** The name of a report's period, such as `2026-W46`; or of an alert, such as `export 2026-11-16T03:00:00.000Z`. */
  period: z.string(),
  recipient: z.string(),
});
/** The key of a delivery: there is never more than one row for it. Recipients are compared without case. */
export type DeliveryKey = Readonly<z.infer<typeof deliveryKey>>;

export const deliveryRow = deliveryKey.extend({
  state: z.enum(DELIVERY_STATES),
  via: z.enum(VIAS),
  message_id: z.string(),
  /** The number of its last attempt, among all attempts of the workspace to send something. */
  attempt: z.int(),
  attempts: z.int(),
  tried_at: timestampColumn,
  settled_at: timestampColumn.nullable(),
  next_attempt_at: timestampColumn.nullable(),
  note: z.string().nullable(),
  days_covered: z.int().nullable(),
  human: z.int().nullable(),
  ai: z.int().nullable(),
});
/** An email or post to one recipient, with what became of it. */
export type Delivery = z.infer<typeof deliveryRow>;

/** Every delivery ever attempted, ordered by project, report, period and recipient. */
export const readDeliveries = (state: State): Delivery[] => state.all(EMAILS, deliveryRow);

/** Those of one report and project. */
export const readDeliveriesOf = (
  state: State,
  { report, project }: Pick<DeliveryKey, 'report' | 'project'>,
): Delivery[] => state.all(EMAILS_OF_PROJECT, deliveryRow, { report, project });

/** Those of one report and period to one recipient, about any project. */
export const readDeliveriesTo = (
  state: State,
  { report, period, recipient }: Omit<DeliveryKey, 'project'>,
): Delivery[] => state.all(EMAILS_OF_PERIOD, deliveryRow, { report, period, recipient });

/** The delivery whose last attempt has this number; undefined if another attempt followed. */
export const readDeliveryOf = (state: State, attempt: number): Delivery | undefined =>
  state.get(EMAIL_OF_ATTEMPT, deliveryRow, { attempt });

export const storeDelivery = (state: State, delivery: Delivery): number => state.run(STORE_EMAIL, delivery);

export const removeDelivery = (state: State, { report, project, period, recipient }: DeliveryKey): number =>
  state.run(REMOVE_EMAIL, { report, project, period, recipient });
