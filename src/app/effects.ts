import { referenceOf } from '../agents/ledger.js';
import type { PlatformClock } from '../api/clock.js';
import { ClockError } from '../api/errors.js';
import { SMTP_URL_VARIABLE } from '../config/load.js';
import { notesFileIn } from '../config/notes.js';
import type { EffectsJournal } from '../effects/journal.js';
import { leaveMarker, refuseToStartOver } from '../effects/marker.js';
import { agreeOnPlace, isSamePlace, placeOf, sendsElsewhere } from '../effects/place.js';
import { writeWhole } from '../files.js';
import { type Channel, openChannel } from '../mail/channel.js';
import { expectSender, type MailTransport, outboxTransport, smtpTransport } from '../mail/transport.js';
import type { Effects } from '../steps/parts.js';
import { refuseToForget } from '../warehouse/open.js';
import type { Warehouse } from '../warehouse/warehouse.js';
import type { Workspace } from './workspace.js';

/** Throws a `StorageError` if this would begin a workspace again that has already loaded or sent something. */
export async function mayBeginHere({ liveFile, historyFile, dataDir, marker }: Workspace): Promise<void> {
  await refuseToForget(liveFile, historyFile);
  if (marker !== undefined) await refuseToStartOver(marker, dataDir, liveFile);
}

/** What may be sent from here, and how; a new sandbox gets the earlier jobs and notes of its workspace. */
export async function openEffects(
  workspace: Workspace,
  store: Warehouse,
  journal: EffectsJournal,
  now: Date,
): Promise<{ effects: Omit<Effects, 'unknownDeliveries'>; isNewSandbox: boolean }> {
  const { dataDir, machine, configuration } = workspace;
  const here = await placeOf(dataDir, machine);
  const place = await agreeOnPlace(journal, store, here, now);
  const isSandbox = configuration === undefined;
  const isNewSandbox = isSandbox && !journal.found;
  if (isNewSandbox) await enterPast(dataDir, journal, now);
  // The built-in sandbox has nobody to send to.
  const isHere = isSandbox || isSamePlace(place, here);
  let transport: MailTransport | undefined;
  const effects = {
    journal,
    here,
    elsewhere: isHere ? undefined : sendsElsewhere(place, here, journal.lastSentAt),
    // One for the whole command, because it remembers that the server stopped answering.
    transport: () => (transport ??= transportOf(workspace)),
    channels: channelsOf(workspace),
  };
  return { effects, isNewSandbox };
}

async function enterPast(dataDir: string, journal: EffectsJournal, now: Date): Promise<void> {
  const { pastEntries, pastNotes } = await import('../sandbox/past.js');
  const { defaultFirstDay } = await import('../sandbox/index.js');
  await journal.append(pastEntries(now, referenceOf));
  writeWhole(notesFileIn(dataDir), pastNotes(defaultFirstDay(now)), 0o644);
}

const TOO_FAR_OFF =
  'Nothing is sent while the clocks of this machine and the platform are more than an hour apart. ' +
  'Set whichever is wrong: readership doctor';

/** Lets nothing be sent from a copy, or while one of the clocks is wrong, and leaves the marker once something is. */
export async function watchSending(
  { dataDir, marker }: Workspace,
  { journal, elsewhere }: Effects,
  clock: PlatformClock,
): Promise<void> {
  const whyNot = async () => {
    if (elsewhere !== undefined) return elsewhere;
    await clock.ask();
    return clock.isTooFarOff() ? new ClockError(TOO_FAR_OFF) : undefined;
  };
  const remember = async () => marker !== undefined && leaveMarker(marker, dataDir);
  journal.askFirst(whyNot, remember);
  // Versions before 0.4 left none.
  if (journal.lastSentAt !== undefined) await remember();
}

/** The mail server from the environment; without one, or in the sandbox, the outbox. */
export function transportOf({ configuration, settings, outboxDir }: Workspace): MailTransport {
  const url = configuration?.environment[SMTP_URL_VARIABLE] ?? '';
  if (url === '') return outboxTransport(outboxDir);
  expectSender(url, settings.mail?.from);
  return smtpTransport(url);
}

/** The configured channels by name, with their addresses and secrets from the environment. */
export const channelsOf = ({
  settings,
  configuration,
}: Pick<Workspace, 'settings' | 'configuration'>): Map<string, Channel> =>
  new Map(
    Object.entries(settings.channels).map(([name, channel]) => [
      name,
      openChannel(channel, configuration?.environment ?? {}),
    ]),
  );
