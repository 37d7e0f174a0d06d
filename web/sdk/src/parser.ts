// Bytes to frames, by the WHATWG specification of server-sent events, section "Parsing an event
// stream". Pure: no I/O, no timers. Chunks may be cut anywhere, also inside a UTF-8 sequence, the byte
// order mark or a CRLF.

/** One dispatched event. `id` is the position after it, inherited when the frame had none. */
export interface Frame {
  readonly event: string;
  readonly data: string;
  readonly id: string;
}

const CR = '\r';
const LF = '\n';

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
  readonly #decoder = new TextDecoder('utf-8');
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
    const text = this.#decoder.decode(bytes, { stream: true });
    let start = 0;
    if (this.#afterCR && text.length > 0) {
      this.#afterCR = false;
      if (text.startsWith(LF)) start = 1;
    }
    // Both searches remember their last hit, so that a chunk is scanned once, however many lines it has.
    let lf = text.indexOf(LF, start);
    let cr = text.indexOf(CR, start);
    while (lf !== -1 || cr !== -1) {
      const byCR = cr !== -1 && (lf === -1 || cr < lf);
      const end = byCR ? cr : lf;
      this.#take(this.#line + text.slice(start, end), frames);
      this.#line = '';
      start = end + 1;
      if (byCR) {
        if (start === text.length) this.#afterCR = true;
        else if (lf === start) start++;
        cr = text.indexOf(CR, start);
      }
      if (lf !== -1 && lf < start) lf = text.indexOf(LF, start);
    }
    this.#line += text.slice(start);
    return frames;
  }

  #take(line: string, frames: Frame[]): void {
    if (line === '') {
      this.#dispatch(frames);
      return;
    }
    const colon = line.indexOf(':');
    if (colon === 0) return; // a comment: the heartbeat
    const field = colon === -1 ? line : line.slice(0, colon);
    let value = colon === -1 ? '' : line.slice(colon + 1);
    if (value.startsWith(' ')) value = value.slice(1);
    switch (field) {
      case 'event':
        this.#event = value;
        break;
      case 'data':
        this.#data.push(value);
        break;
      case 'id':
        if (!value.includes('\0')) this.#id = value;
        break;
      case 'retry':
        if (/^[0-9]+$/.test(value)) this.retry = Number(value);
        break;
    }
  }

  #dispatch(frames: Frame[]): void {
    this.lastEventId = this.#id;
    if (this.#data.length > 0) {
      frames.push({ event: this.#event || 'message', data: this.#data.join('\n'), id: this.#id });
    }
    this.#data = [];
    this.#event = '';
  }
}
