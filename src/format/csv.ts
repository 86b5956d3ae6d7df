/**
 * A CSV cell (RFC 4180). Text that a spreadsheet would run as a formula is prefixed with an
 * apostrophe, because a path is whatever a visitor typed.
 */
export function csvCell(text: string, isNumeric: boolean): string {
  const guarded = !isNumeric && /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(guarded) ? `"${guarded.replaceAll('"', '""')}"` : guarded;
}
