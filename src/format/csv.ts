/**
 * A cell of CSV (RFC 4180). An apostrophe guards text that a spreadsheet would run as a formula,
 * since a path is whatever a visitor typed.
 */
export function csvCell(text: string, isNumeric: boolean): string {
  const guarded = !isNumeric && /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(guarded) ? `"${guarded.replaceAll('"', '""')}"` : guarded;
}
