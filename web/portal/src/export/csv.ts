// Rows as comma-separated values, as RFC 4180 has them.

import type { Elapsed } from '@kubecast/sdk';

export type Cell = string | number | undefined;

/** Tells spreadsheets that the file is UTF-8. */
export const byteOrderMark = '\uFEFF';

export function csvLine(cells: readonly Cell[]): string {
  return `${cells.map(csvCell).join(',')}\r\n`;
}

/**
 * A spreadsheet takes a cell that begins so for a formula, and names, reasons and messages are anybody's: an apostrophe in front
 * makes it a text (https://owasp.org/www-community/attacks/CSV_Injection). Where the list separator is a semicolon, or the text is
 * pasted, cells begin behind semicolons, tabs and the ends of lines, whatever is in quotes here. Blanks and quotes before the sign
 * may be left out there.
 */
const formula = /(^|[;\t\r\n])(?=(?:[^\S\t\r\n]|["\0\u200B-\u200F\u2060])*[=+\-@\uFF1D\uFF0B\uFF0D\uFF20])/g;

function csvCell(cell: Cell): string {
  if (cell === undefined) return '';
  if (typeof cell === 'number') return String(cell);
  const text = (/^[\t\r\n]/.test(cell) ? "'" : '') + cell.replace(formula, "$1'");
  return /[",;\t\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** Milliseconds since the epoch, in a form that every spreadsheet and program reads. */
export const timeCell = (time: number | undefined): Cell => (time ? new Date(time).toISOString() : undefined);

/** Up to now, if it goes on. */
export const secondsCell = (of: Elapsed | undefined): Cell => of && (of.over + (of.since === undefined ? 0 : Math.max(0, Date.now() - of.since))) / 1_000;
