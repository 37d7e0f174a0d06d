import { expect, test } from 'vitest';
import { mostShown, shownOf, wordsOf } from './terminal.ts';

const looks = (raw: string): string[] => shownOf(raw).spans.map(({ text, look, color, background }) => [text, look, color, background].filter(Boolean).join('|'));

test('colours become looks of pieces of text, and nothing else of what terminals obey is left', () => {
  expect(looks('\x1b[32mINFO\x1b[0m loading')).toEqual(['INFO|ansi-green', ' loading']);
  expect(looks('\x1b[1;4;91ma\x1b[22;24;39mb')).toEqual(['a|ansi-bright-red ansi-bold ansi-underline', 'b']);
  expect(looks('\x1b[38;5;208ma\x1b[0m\x1b[48;2;1;2;3mb')).toEqual(['a|rgb(255, 135, 0)', 'b|rgb(1, 2, 3)']);
  expect(looks('\x1b[7ma')).toEqual(['a|ansi-reverse']);
  expect(looks('\x1b[2J\x1b[1;1Ha\x1b[?25lb\x1b(Bc\x1b]0;title\x07d')).toEqual(['abcd']);
});

test('what returned to the beginning of its line is what was written last, over what was longer', () => {
  const bar = Array.from({ length: 2_000 }, (_, n) => `\rEpoch 1/3: ${String(n / 20).padStart(3)}%|${'█'.repeat(n / 200)}`).join('');
  expect(wordsOf(`${bar}\rEpoch 1/3: 100%|██████████| done`)).toBe('Epoch 1/3: 100%|██████████| done');
  expect(wordsOf('downloading 10%\rok')).toBe('okwnloading 10%');
  expect(wordsOf('downloading 10%\r\x1b[Kok')).toBe('ok');
  expect(wordsOf('a line of Windows\r')).toBe('a line of Windows');
  expect(looks('\r\x1b[32m50%\x1b[0m\r\x1b[32m100%\x1b[0m')).toEqual(['100%|ansi-green']);
  expect(wordsOf('spin |\b/\b-\bdone')).toBe('spin done');
});

test("a stranger's text is no link, hides nothing and turns nothing around", () => {
  expect(looks('\x1b]8;;javascript:alert(1)\x1b\\click\x1b]8;;\x1b\\ me')).toEqual(['click me']);
  expect(wordsOf('\x1b]never ended, so it hides the rest')).toBe('␛]never ended, so it hides the rest');
  expect(wordsOf('rm -rf \u202e/ ohce\u2066')).toBe('rm -rf ⟨U+202E⟩/ ohce⟨U+2066⟩');
  expect(wordsOf('\x00\x01\x7f\x9b31m\ufeff')).toBe('␀␁␡⟨U+009B⟩31m⟨U+FEFF⟩');
  expect(shownOf('\x1b[38;2;1;2;url(x)ma\x1b[31;"onload=x"mb').spans.every(({ look, color }) => !/[("]/.test(look) && !color)).toBe(true);
  expect(wordsOf('\x1b[8mhidden\x1b[0m')).toBe('hidden');
});

test('a line of a megabyte, or of ten thousand escape sequences, is bounded in what it shows and in time', { timeout: 60_000 }, () => {
  const shown = (raw: string): ReturnType<typeof shownOf> => {
    const began = performance.now();
    const made = shownOf(raw);
    expect(performance.now() - began).toBeLessThan(20_000); // some milliseconds; it could be minutes
    return made;
  };
  const long = shown('x'.repeat(1 << 20));
  expect([long.spans[0]?.text.length, long.more]).toEqual([mostShown, (1 << 20) - mostShown]);
  const many = shown(Array.from({ length: 10_000 }, (_, n) => `\x1b[3${n % 8}mx`).join(''));
  expect(many.spans.length).toBeLessThanOrEqual(402);
  expect(many.spans.reduce((sum, { text }) => sum + text.length, many.more)).toBe(10_000);
  for (const hostile of ['\x1b]', '\x1b[', '\x1b', '\r', '\x1b[K\r', '\b', 'ab\r', '\x1bP', '\x1b[1;1;', '\x1b[?1h']) shown(hostile.repeat(60_000 / hostile.length));
});
