import { describe, expect, test } from 'vitest';
import { FrameParser, type Frame } from './parser.ts';
import { seededRandom } from '../../mock/random.ts';

const utf8 = new TextEncoder();

function parse(text: string | Uint8Array, cuts: readonly number[] = []): { frames: Frame[]; parser: FrameParser } {
  const bytes = typeof text === 'string' ? utf8.encode(text) : text;
  const parser = new FrameParser();
  const frames: Frame[] = [];
  let from = 0;
  for (const cut of [...cuts, bytes.length]) {
    frames.push(...parser.push(bytes.subarray(from, cut)));
    from = cut;
  }
  return { frames, parser };
}

describe('framing', () => {
  test.each([
    ['LF', 'data: a\n\ndata: b\n\n'],
    ['CR', 'data: a\r\rdata: b\r\r'],
    ['CRLF', 'data: a\r\n\r\ndata: b\r\n\r\n'],
    ['all three mixed', 'data: a\r\n\ndata: b\n\r\n'],
    ['a byte order mark first', '\uFEFFdata: a\n\ndata: b\n\n'],
    ['comments between and inside', ': hello\n\ndata: a\n:\n\n:\ndata: b\n: x\n\n'],
    ['no space after the colon', 'data:a\n\ndata:b\n\n'],
    ['unknown fields', 'foo: bar\ndata: a\n\nfoo\ndata: b\n\n'],
  ])('%s: the same two events, wherever the chunk is cut', (_, text) => {
    const length = utf8.encode(text).length;
    for (let cut = 0; cut <= length; cut++) {
      const { frames } = parse(text, [cut]);
      expect(frames.map((frame) => frame.data)).toEqual(['a', 'b']);
    }
  });

  test('only the first byte order mark is one', () => {
    expect(parse('data: a\n\n\uFEFFdata: b\n\ndata: c\n\n').frames.map((frame) => frame.data)).toEqual(['a', 'c']);
  });

  test('CRLF cut in the middle is one line end, not a line end and an empty line', () => {
    const { frames } = parse('data: a\r\ndata: b\r\n\r\n', [8]);
    expect(frames).toEqual([{ event: 'message', data: 'a\nb', id: '' }]);
  });

  test('a chunk that ends in CR dispatches at once; nobody waits for a LF that may never come', () => {
    const parser = new FrameParser();
    expect(parser.push(utf8.encode('data: a\r\r'))).toHaveLength(1);
    expect(parser.push(utf8.encode('\ndata: b\r\r')).map((frame) => frame.data)).toEqual(['b']);
  });

  test('an empty chunk between CR and LF changes nothing', () => {
    const { frames } = parse('data: a\r\n\r\n', [8, 8, 8]);
    expect(frames).toHaveLength(1);
  });

  test('an unfinished last frame is discarded, and its id is no position', () => {
    const { frames, parser } = parse('id: 1\ndata: a\n\nid: 2\ndata: b\n');
    expect(frames).toEqual([{ event: 'message', data: 'a', id: '1' }]);
    expect(parser.lastEventId).toBe('1');
  });

  test('a character cut into single bytes arrives whole', () => {
    const bytes = utf8.encode('data: Ωé😀\n\n');
    const cuts = [...bytes.keys()];
    expect(parse(bytes, cuts).frames[0]?.data).toBe('Ωé😀');
  });

  test('broken UTF-8 becomes U+FFFD and does not swallow the framing', () => {
    const bytes = new Uint8Array([...utf8.encode('data: a'), 0xf0, 0x9f, ...utf8.encode('\n\ndata: b\n\n')]);
    expect(parse(bytes).frames.map((frame) => frame.data)).toEqual(['a\uFFFD', 'b']);
  });
});

describe('fields', () => {
  test('several data lines are joined by LF, empty ones count', () => {
    expect(parse('data: a\ndata\ndata:\ndata: b\n\n').frames[0]?.data).toBe('a\n\n\nb');
  });

  test('only one leading space is the separator', () => {
    expect(parse('data:  a \n\n').frames[0]?.data).toBe(' a ');
  });

  test('a frame without data is no event, and its event name does not leak into the next', () => {
    expect(parse('event: x\n\ndata: a\n\n').frames).toEqual([{ event: 'message', data: 'a', id: '' }]);
  });

  test('a frame with an empty data line is an event', () => {
    expect(parse('data\n\n').frames).toEqual([{ event: 'message', data: '', id: '' }]);
  });

  test('an id-only frame moves the position', () => {
    const { frames, parser } = parse('id: 7\n\n');
    expect(frames).toEqual([]);
    expect(parser.lastEventId).toBe('7');
  });

  test('an id is inherited until the next, and an empty one clears it', () => {
    const { frames } = parse('id: 1\ndata: a\n\ndata: b\n\nid\ndata: c\n\n');
    expect(frames.map((frame) => frame.id)).toEqual(['1', '1', '']);
  });

  test('an id with NULL is ignored', () => {
    expect(parse('id: 1\ndata: a\n\nid: 2\0\ndata: b\n\n').frames.map((frame) => frame.id)).toEqual(['1', '1']);
  });

  test.each([
    ['retry: 1500', 1500],
    ['retry:0', 0],
    ['retry: 1.5', undefined],
    ['retry: -1', undefined],
    ['retry: 1s', undefined],
    ['retry:', undefined],
    ['retry', undefined],
    ['retry: ٣', undefined],
  ])('%j sets %j: digits only', (line, want) => {
    expect(parse(`${line}\n\n`).parser.retry).toBe(want);
  });

  test('a new parser inherits the position of the stream that it continues', () => {
    const parser = new FrameParser('9');
    expect(parser.push(utf8.encode('data: a\n\n'))[0]?.id).toBe('9');
  });
});

test('any split of any bytes gives the events of the whole', () => {
  const random = seededRandom(1);
  const pieces = ['data: ', 'data', 'id: ', 'event: ', 'retry: 5', ':', ' ', '\n', '\r', '\r\n', '\n\n', '\0', '\uFEFF', 'a', 'é', '😀', 'xyz'];
  for (let round = 0; round < 3_000; round++) {
    let text = random() < 0.3 ? '\uFEFF' : '';
    for (let n = random() * 60; n > 0; n--) text += pieces[Math.floor(random() * pieces.length)] ?? '';
    const bytes = utf8.encode(text);
    // Now and then the bytes are no UTF-8 at all.
    if (bytes.length > 0 && random() < 0.3) bytes[Math.floor(random() * bytes.length)] = Math.floor(random() * 256);
    const cuts = Array.from({ length: Math.floor(random() * 8) }, () => Math.floor(random() * bytes.length)).sort((a, b) => a - b);
    const whole = parse(bytes);
    const split = parse(bytes, cuts);
    expect(split.frames, JSON.stringify({ text, cuts })).toEqual(whole.frames);
    expect(split.parser.lastEventId).toBe(whole.parser.lastEventId);
    expect(split.parser.retry).toBe(whole.parser.retry);
  }
});

test('a large event in small chunks takes time in proportion to its size', () => {
  /** Of a few tries the one that took least, in microseconds of a processor: how long one waits for that is another matter. */
  const timeFor = (size: number): number => {
    const bytes = utf8.encode(`data: ${'x'.repeat(size)}\n\n`);
    const cuts = Array.from({ length: bytes.length >> 12 }, (_, n) => (n + 1) << 12);
    const tries = Array.from({ length: 5 }, () => {
      const began = process.cpuUsage();
      expect(parse(bytes, cuts).frames[0]?.data.length).toBe(size);
      const { user, system } = process.cpuUsage(began);
      return user + system;
    });
    return Math.min(...tries);
  };
  timeFor(1 << 20);
  // Eight times the size is eight times the time, and sixty-four times if it were quadratic.
  expect(timeFor(8 << 20) / timeFor(1 << 20)).toBeLessThan(24);
});
