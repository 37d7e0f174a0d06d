// A line as a terminal shows it: colours, and what is overwritten. Lines are strangers' text: what is not a colour is taken out or made visible, and never markup.

import Anser, { type AnserJsonEntry } from 'anser';

/** A piece of a line with one look. */
export interface Span {
  readonly text: string;
  /** Names of styles, by spaces. */
  readonly look: string;
  /** Of one of the 256 or 16 million colours, as `rgb(…)`. */
  readonly color?: string;
  readonly background?: string;
}

export interface Shown {
  readonly spans: readonly Span[];
  /** What is left out behind them, in characters. */
  readonly more: number;
}

/** How much of a line is shown before somebody asks for the rest of it, in characters. */
export const mostShown = 2_000;
/** So many looks a line may have; what follows has none. */
const mostSpans = 400;

const colours = /\x1b\[[\d;:]*m/g;
/** Titles, hyperlinks and the like, with their end; moves and erasures; single characters. A hyperlink's text is no part of these, its address is. */
const controls = /\x1b\][^\x07\x1b]{0,4096}(?:\x07|\x1b\\)|\x1b[PX^_][^\x1b]{0,4096}\x1b\\|\x1b\[[0-?]*[ -/]*[@-~]|\x1b[ -/]*[0-Z\\^-~]/g;
const erasesRest = /\x1b\[0?K/;
/** What cannot be seen, or turns the order of what can. */
const unseen = /[\x00-\x08\x0b-\x1f\x7f-\x9f]|[\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g;

const withoutControls = (text: string): string => text.replace(controls, (all) => (all.endsWith('m') && all.startsWith('\x1b[') && /^[\d;:]*$/.test(all.slice(2, -1)) ? all : ''));

/** A text without what colours it. */
const plain = (text: string): string => text.replace(colours, '');

/** What is left on a terminal's line behind all that returned to its beginning. Colours and erasures may be in it. */
function afterReturns(text: string): string {
  const parts = text.split('\r').filter((part) => part !== '');
  let shown = parts.pop() ?? '';
  for (let looked = 0; looked < 64 && parts.length > 0 && !erasesRest.test(shown); looked++) {
    const under = parts.pop() ?? '';
    const longer = plain(withoutControls(under)).slice(plain(withoutControls(shown)).length);
    if (longer) shown += `\x1b[0m${longer}`;
    if (erasesRest.test(under)) break;
  }
  return shown;
}

function afterBackspaces(text: string): string {
  const kept: string[] = [];
  for (const character of text) {
    if (character === '\b') kept.pop();
    else kept.push(character);
  }
  return kept.join('');
}

const visible = (text: string): string =>
  text.replace(unseen, (one) => {
    const code = one.charCodeAt(0);
    return code < 0x20 ? String.fromCharCode(0x2400 + code) : code === 0x7f ? '␡' : `⟨U+${code.toString(16).toUpperCase().padStart(4, '0')}⟩`;
  });

/** With its colours, and nothing else that controls a terminal. */
function coloured(raw: string): string {
  let text = raw;
  if (text.includes('\r')) text = afterReturns(text);
  if (text.includes('\x1b')) text = withoutControls(text);
  return text.includes('\b') ? afterBackspaces(text) : text;
}

/** What a line says, as it is searched, copied and read out. */
export const wordsOf = (raw: string): string => visible(plain(coloured(raw)));

export function shownOf(raw: string, most = mostShown): Shown {
  const text = coloured(raw);
  if (!text.includes('\x1b')) {
    const all = visible(text);
    return { spans: all ? [{ text: all.slice(0, most), look: '' }] : [], more: Math.max(0, all.length - most) };
  }
  const { styled, rest } = within(text);
  const spans: Span[] = [];
  let room = most;
  let more = 0;
  for (const piece of [...Anser.ansiToJson(styled, { use_classes: true, remove_empty: true }).map(spanOf), { text: visible(rest), look: '' }]) {
    if (piece.text === '') continue;
    if (room > 0) spans.push({ ...piece, text: piece.text.slice(0, room) });
    more += Math.max(0, piece.text.length - room);
    room = Math.max(0, room - piece.text.length);
  }
  return { spans, more };
}

/** A text up to as many colours as a line may have, and what is behind them without any. */
function within(text: string): { styled: string; rest: string } {
  let seen = 0;
  for (const { index } of text.matchAll(colours)) {
    if (++seen > mostSpans) return { styled: text.slice(0, index), rest: plain(text.slice(index)) };
  }
  return { styled: text, rest: '' };
}

/** What the library's types leave out. */
type Piece = AnserJsonEntry & { readonly isInverted?: boolean };

function spanOf({ content, fg, bg, fg_truecolor, bg_truecolor, isInverted, decorations }: Piece): Span {
  // The page's own colours the other way round, which the library takes for black on white.
  const turned = isInverted === true && fg === 'ansi-black' && bg === 'ansi-white';
  const color = mixed(fg, fg_truecolor);
  const background = mixed(bg, bg_truecolor);
  const looks = [
    ...(turned ? ['ansi-reverse'] : []),
    ...(!turned && !color && fg ? [fg] : []),
    ...(!turned && !background && bg ? [`on-${bg}`] : []),
    ...decorations.filter((one) => one !== 'blink' && one !== 'hidden' && one !== 'reverse').map((one) => `ansi-${one}`),
  ];
  return { text: visible(content), look: looks.join(' '), ...(color && { color }), ...(background && { background }) };
}

/** A colour that has no name. */
function mixed(name: string | null, rgb: string | null): string | undefined {
  if (rgb !== null) return /^\d{1,3}, \d{1,3}, \d{1,3}$/.test(rgb) ? `rgb(${rgb})` : undefined;
  const index = name?.startsWith('ansi-palette-') ? Number(name.slice('ansi-palette-'.length)) : NaN;
  if (!(index >= 16 && index <= 255)) return undefined;
  if (index >= 232) return `rgb(${Array(3).fill(8 + 10 * (index - 232)).join(', ')})`;
  const level = (n: number): number => (n === 0 ? 0 : 55 + 40 * n);
  return `rgb(${[Math.floor((index - 16) / 36), Math.floor((index - 16) / 6) % 6, (index - 16) % 6].map(level).join(', ')})`;
}
