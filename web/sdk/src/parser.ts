// Bytes to frames, by the WHATWG specification of server-sent events, section "Parsing an event
// stream". Pure: no I/O, no timers. Chunks may be cut anywhere, also inside a UTF-8 sequence, the byte
// order mark or a CRLF.

/** One dispatched event. `id` is the position after it, inherited when the frame had none. */
export interface Frame {
  readonly event: string;
  readonly data: string;
  readonly id: string;
}

/** Cuts a stream of bytes into frames, by the rules of the HTML standard for `text/event-stream`. */
export class FrameParser {
  /**
   * The position after the last complete frame. An id-only frame moves it although it dispatches no
   * event; an unfinished frame at the end of a stream does not.
   */
  lastEventId: string;
  /** The last `retry:` in milliseconds, if there was one. */
  retry: number | undefined;

  // The decoder drops the byte order mark and holds back what is cut inside a character.
  readonly #decoder = new TextDecoder();
  #line = '';
  #afterCR = false;
  #data: string[] = [];
  #event = '';
  #id: string;

  /** A parser inherits the position of the stream that it continues, as a browser's EventSource does. */
  constructor(lastEventId = '') {
    this.lastEventId = lastEventId;
    this.#id = lastEventId;
  }

  /** Takes the next bytes and returns the frames that they complete. */
  push(bytes: Uint8Array): Frame[] {
    const frames: Frame[] = [];
    let text = this.#decoder.decode(bytes, { stream: true });
    if (!text) return frames;
    if (this.#afterCR && text.startsWith('\n')) text = text.slice(1);
    // The gateway ends its lines with LF, and to look for that alone is faster.
    const lines = text.split(text.includes('\r') ? /\r\n?|\n/ : '\n');
    lines[0] = this.#line + (lines[0] ?? '');
    this.#line = lines.pop() ?? '';
    this.#afterCR = text.endsWith('\r');
    for (const line of lines) this.#take(line, frames);
    return frames;
  }

  #take(line: string, frames: Frame[]): void {
    const colon = `${line}:`.indexOf(':');
    const field = line.slice(0, colon); // empty of a comment: the heartbeat
    const value = line.slice(colon + (line[colon + 1] === ' ' ? 2 : 1));
    if (line === '') {
      this.lastEventId = this.#id;
      if (this.#data.length > 0) frames.push({ event: this.#event || 'message', data: this.#data.join('\n'), id: this.#id });
      this.#data = [];
      this.#event = '';
    } else if (field === 'event') this.#event = value;
    else if (field === 'data') this.#data.push(value);
    else if (field === 'id' && !value.includes('\0')) this.#id = value;
    else if (field === 'retry' && /^\d+$/.test(value)) this.retry = Number(value);
  }
}
