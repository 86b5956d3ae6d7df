import { type Logger, pino } from 'pino';
import { prettyFactory } from 'pino-pretty';
import type { Output } from './output.js';

export type Log = Logger;

/** A log on standard output: one JSON object a line, or lines for people on a terminal. */
export function openLog(output: Output): Log {
  const pretty = prettyFactory({
    ...{ colorize: output.colors.isColorSupported, ignore: 'pid,hostname', singleLine: true },
    translateTime: 'SYS:yyyy-mm-dd HH:MM:ss',
  });
  const write = (line: string) => {
    output.write(output.isTerminal ? pretty(line) : line);
  };
  return pino({ base: null, timestamp: pino.stdTimeFunctions.isoTime }, { write });
}
