// Of a log that began long ago a page has what is followed, and asks for what is before that.

import { act } from 'react';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { parseView, setView } from '../view/view.ts';
import { choose, eachLog, event, line, open, page, pass, tell } from './logpage.tsx';

eachLog();

/** A gateway that has a log, and answers questions about it. */
class Asked {
  readonly questions: URLSearchParams[] = [];
  readonly aborted: string[] = [];
  items: Item[] = [];
  /** What it says instead. */
  instead: (query: URLSearchParams) => object | undefined | Promise<object | undefined> = () => undefined;

  readonly fetch = async (url: string, { signal }: { signal: AbortSignal }): Promise<Response> => {
    const query = new URL(url, 'http://x').searchParams;
    this.questions.push(query);
    signal.addEventListener('abort', () => this.aborted.push(query.get('search') ?? ''));
    const given = await this.instead(query);
    signal.throwIfAborted();
    return new Response(JSON.stringify(given ?? this.#answer(query)), { status: given && 'detail' in given ? 503 : 200 });
  };

  #answer(query: URLSearchParams): object {
    const [from, limit, time, search] = [Number(query.get('from')), Number(query.get('limit')), query.get('time'), query.get('search')];
    if (search !== null) {
      const matches = this.items.map((item, index) => ({ index, item })).filter(({ index, item }) => index >= from && item.text.toLowerCase().includes(search.toLowerCase()));
      return { matches: matches.slice(0, limit), complete: matches.length <= limit, count: this.items.length };
    }
    const index = this.items.findIndex((item) => time !== null && item.time >= time);
    return { from, items: this.items.slice(from, from + limit), ...(index >= 0 && { index }), complete: false };
  }
}
interface Item {
  readonly type: 'line';
  readonly namespace: string;
  readonly pod: string;
  readonly container: string;
  readonly text: string;
  readonly time: string;
}
const timeOf = (second: number): string => new Date(Date.parse('2026-11-27T08:00:00Z') + second * 1_000).toISOString().replace('.000', '');
const item = (n: number, text = `line ${n}`, container = 'main'): Item => ({ type: 'line', namespace: 'n', pod: 'p', container, text, time: timeOf(n) });

describe('of a log that began long ago', () => {
  let asked: Asked;
  beforeEach(() => {
    asked = new Asked();
    vi.stubGlobal('fetch', asked.fetch);
    vi.spyOn(HTMLElement.prototype, 'scrollHeight', 'get').mockReturnValue(1_000_000);
  });
  afterEach(() => vi.unstubAllGlobals());

  /** Of so many lines the last ten are followed. */
  const openOf = async (count: number, text?: (n: number) => string): Promise<void> => {
    asked.items = Array.from({ length: count }, (_, n) => item(n, text?.(n)));
    await open(() => event('started', { restart: 1 }), ...asked.items.slice(-10).map(({ text: said, time }) => () => line(said, time)));
  };
  const settle = async (): Promise<void> => {
    for (let n = 0; n < 20; n++) await pass();
  };
  const count = (): string => page.element.querySelector('.log-count')?.textContent ?? '';
  const search = async (text: string): Promise<void> => {
    const input = page.element.querySelector('input');
    if (input) page.type(input, text);
    await settle();
  };
  const press = async (name: string): Promise<void> => {
    page.act(() => page.element.querySelector<HTMLButtonElement>(`button[aria-label="${name}"]`)?.click());
    await settle();
    page.act(() => scroller().dispatchEvent(new Event('scroll')));
    await settle();
  };
  const earlier = (): HTMLButtonElement | null => page.element.querySelector<HTMLButtonElement>('.log-earlier');
  const load = async (): Promise<void> => {
    page.act(() => earlier()?.click());
    await settle();
  };
  const here = (): string => page.element.querySelector('.log-here .log-text')?.textContent ?? '';
  const scroller = (): HTMLElement => page.element.querySelector<HTMLElement>('.log-lines') ?? page.element;
  const scroll = async (to: number): Promise<void> => {
    page.act(() => {
      scroller().scrollTop = to;
      scroller().dispatchEvent(new Event('scroll'));
    });
    await settle();
  };
  test('lines of before the newest are read when somebody wants them, each once, up to the first', async () => {
    await openOf(1_050);
    expect(earlier()?.textContent).toBe('Earlier lines ↑');
    await load();
    expect(earlier()?.textContent).toBe('41 earlier lines ↑');
    await load();
    expect(earlier()).toBeNull();
    expect(asked.questions.map(String)).toEqual([
      'view=lines&limit=0&time=2026-11-27T08%3A17%3A21Z',
      'view=lines&from=41&limit=1000&time=2026-11-27T08%3A17%3A21Z',
      'view=lines&from=0&limit=41&time=2026-11-27T08%3A17%3A21Z',
    ]);
    await search('line');
    expect(count()).toBe('– of 1,050');
  });

  test('lines whose places have become others are not put before those that are there', async () => {
    await openOf(3_000);
    await load();
    expect(earlier()?.textContent).toBe('1,991 earlier lines ↑');
    asked.items.splice(0, 11); // rotated away
    await load();
    expect(earlier()?.textContent).toBe('Earlier lines ↑'); // it begins anew
    await load();
    expect(earlier()?.textContent).toBe('1,980 earlier lines ↑');
  });

  test('a log too long to be placed is not told to have no earlier lines', async () => {
    asked.instead = () => ({ first: 'a', from: 0, items: [], count: 700_000, complete: false, stopped: 'bytes' });
    await openOf(100);
    await load();
    expect(earlier()?.textContent).toContain('too long');
  });

  test('of an answer that is cut the lines are asked for again that join the newest', async () => {
    asked.instead = (query) => {
      const [from, limit] = [Number(query.get('from')), Number(query.get('limit'))];
      return limit > 600 ? { from, items: asked.items.slice(from, from + 600), complete: false, stopped: 'size' } : undefined;
    };
    await openOf(2_009);
    await load();
    expect(asked.questions.slice(1).map((query) => `${query.get('from')}+${query.get('limit')}`)).toEqual(['1000+1000', '1500+500']);
    expect(earlier()?.textContent).toBe('1,500 earlier lines ↑');
  });

  test('what comes in front moves nothing, also where a filter shows a part of it', async () => {
    await openOf(1_100, (n) => (n % 100 === 0 || n >= 1_090 ? 'ERROR x' : 'INFO x'));
    choose('error');
    await scroll(20);
    const before = scroller().scrollTop;
    await load();
    expect(scroller().scrollTop - before).toBe((10 - 1) * 18); // the run's beginning is not among these
  });

  test('a search goes through all of it, loads what is around a match, and says what is missing between', async () => {
    await openOf(12_000, (n) => (n % 3_000 === 5 || n === 11_995 ? `loss ${n}` : `line ${n}`));
    await search('LOSS');
    expect(count()).toBe('– of 5');
    await press('Previous match');
    expect([count(), here()]).toEqual(['5 of 5', 'loss 11995']);
    await press('Previous match');
    expect([count(), here()]).toEqual(['4 of 5', 'loss 9005']);
    await press('Previous match');
    await press('Previous match');
    await press('Previous match');
    expect([count(), here()]).toEqual(['1 of 5', 'loss 5']);
    await press('Next match');
    expect([count(), here()]).toEqual(['2 of 5', 'loss 3005']);
  });

  test('a line that was found comes in sight also where the log itself is not, as on a phone', async () => {
    const shown: unknown[] = [];
    const scrolled = vi.spyOn(Element.prototype, 'scrollIntoView').mockImplementation(function (this: Element, how) {
      shown.push([this.className, how]);
    });
    await openOf(100, (n) => (n === 50 ? 'loss' : `line ${n}`));
    expect(shown).toEqual([]);
    await search('loss');
    await press('Previous match');
    expect(here()).toBe('loss');
    expect(shown.at(-1)).toEqual([scroller().className, { block: 'nearest' }]);
    scrolled.mockRestore();
  });

  const asks = (): string => {
    const last = asked.questions.at(-1);
    return `${last?.get('from')}+${last?.get('limit')}`;
  };

  test('lines that are not loaded come when somebody scrolls to them, from either side, and nothing in sight moves', async () => {
    await openOf(12_000, (n) => (n === 5 || n === 3_005 ? 'loss' : `line ${n}`));
    await search('loss');
    await press('Next match');
    await press('Next match');
    const [, , around] = asked.questions.filter((query) => query.get('limit') === '500');
    expect(around).toBeUndefined(); // one for each of the two
    await scroll(240 * 18); // rows of places 0 to 254, a gap, and from 2,755 on
    expect(asks()).toBe('255+1000');
    expect(scroller().scrollTop).toBe(240 * 18);
    await scroll(1_255 * 18 + 4); // the gap is the first in sight
    expect(asks()).toBe('1755+1000');
    expect(scroller().scrollTop).toBe(2_255 * 18 + 4);
    asked.questions.length = 0;
    await scroll(2_400 * 18);
    expect(asked.questions).toEqual([]);
  });

  test('earlier lines are loaded when somebody scrolls up to the first one, one answer at a time', async () => {
    await openOf(12_000);
    await scroll(400);
    await scroll(100);
    expect(earlier()?.textContent).toBe('10,991 earlier lines ↑');
    const top = scroller().scrollTop;
    expect(top).toBeGreaterThan(900 * 18);
    let answer: (said: undefined) => void = () => undefined;
    asked.instead = () => new Promise((resolve) => (answer = resolve));
    await scroll(150);
    page.act(() => earlier()?.click());
    await scroll(80);
    expect(earlier()?.textContent).toBe('Loading lines…');
    expect(asked.questions).toHaveLength(3);
    answer(undefined);
    await settle();
    expect(earlier()?.textContent).toBe('9,991 earlier lines ↑');
    expect(scroller().scrollTop).toBe(80 + 1_000 * 18);
  });

  test('of several containers the lines that are followed are told to be joined only from where on none of one is missing', async () => {
    const main = Array.from({ length: 3_000 }, (_, n) => item(n));
    const side = Array.from({ length: 1_500 }, (_, n) => item(3_000 + n, `side ${n}`, 'side'));
    asked.items = [...main, ...side];
    const told = [...main.slice(-1_000), ...side.slice(-1_000)];
    await open(() => event('started', { restart: 0 }), () => event('started', { restart: 0 }, 'side'), ...told.map(({ text, time, container }) => () => line(text, time, container)));
    await load();
    // The first lines that are followed are at 2,000; of side there are 500 before those.
    expect(asks()).toBe('1500+1000');
    expect(earlier()?.textContent).toBe('1,500 earlier lines ↑');
    await scroll(990 * 18);
    expect(asks()).toBe('2500+1000');
    await search('side');
    expect(count()).toBe('– of 1,500');
  });

  test('the run before of one of several containers is loaded and searched, too', async () => {
    const before = Array.from({ length: 50 }, (_, n) => item(2 * n + 1, `crash ${n}`));
    const side = Array.from({ length: 60 }, (_, n) => item(2 * n, `side ${n}`, 'side'));
    const now = [item(121, 'fresh')];
    asked.items = [...[...before, ...side].sort((a, b) => a.time.localeCompare(b.time)), ...now];
    await open(() => event('started', { restart: 1 }), () => event('started', { restart: 0 }, 'side'), ...[...side, ...now].map(({ text, time, container }) => () => line(text, time, container)));
    await search('crash');
    expect(count()).toBe('– of 50');
    await load();
    expect([earlier(), count()]).toEqual([null, '– of 50']);
  });

  test('of a container that was told late no line is told twice or lost', async () => {
    const side = Array.from({ length: 600 }, (_, n) => item(n, `side ${n}`, 'side'));
    const main = Array.from({ length: 600 }, (_, n) => item(600 + n));
    asked.items = [...side, ...main];
    await open(() => event('started', { restart: 0 }), () => event('started', { restart: 0 }, 'side'), ...[...main, ...side].map(({ text, time, container }) => () => line(text, time, container)));
    await load();
    expect(earlier()?.textContent).toContain('not known yet');
    asked.items.push(item(1_300, 'side by side'));
    await tell(line('side by side', timeOf(1_300)));
    await load();
    await search('side');
    expect(count()).toBe('– of 601');
  });

  test('a match near an end of the log is gone to where an answer has room for few lines', async () => {
    asked.instead = (query) => {
      const [from, limit] = [Number(query.get('from')), Number(query.get('limit'))];
      return !query.has('search') && limit > 100 ? { from, items: asked.items.slice(from, from + 100), complete: false, stopped: 'size' } : undefined;
    };
    await openOf(3_000, (n) => (n === 3 ? 'loss' : `line ${n}`));
    await search('loss');
    await press('Previous match');
    expect([count(), here()]).toEqual(['1 of 1', 'loss']);
  });

  test('of a search that the gateway does not read to its end it is said that there are at least as many', async () => {
    asked.instead = (query) => (query.has('search') ? { matches: [{ index: 3, item: asked.items[3] }], complete: false, stopped: 'bytes' } : undefined);
    await openOf(1_200, (n) => (n === 3 ? 'loss' : 'line'));
    await search('loss');
    expect(count()).toBe('– of at least 1');
  });

  test('of more matches than an answer has, the others are asked for', async () => {
    await openOf(5_000, () => 'loss');
    await search('loss');
    expect(count()).toBe('– of 5,000');
    expect(asked.questions.filter((query) => query.has('search')).map((query) => query.get('from'))).toEqual(['0', '2000', '4000']);
  });

  test('an answer that nobody waits for any more is broken off, and a search that fails says so', async () => {
    let late: (said: object) => void = () => undefined;
    asked.instead = (query) => (query.get('search') === 'one' ? new Promise((resolve) => (late = resolve)) : query.has('search') ? { detail: 'too many logs are read' } : undefined);
    await openOf(1_200, (n) => (n === 1_195 ? 'two' : 'line'));
    await search('one');
    expect(count()).toBe('Searching…');
    await search('two');
    late({ matches: [{ index: 3, item: asked.items[3] }], complete: true });
    await settle();
    expect(asked.aborted).toContain('one');
    expect(count()).toBe('– of 1 in the lines that are loaded. The others could not be searched: too many logs are read');
  });

  test('a match whose place has become another one is looked for again', async () => {
    await openOf(3_000, (n) => (n === 100 ? 'loss' : `line ${n}`));
    await search('loss');
    asked.items.splice(0, 11);
    await press('Previous match');
    expect(count()).toBe('– of 1');
    await press('Previous match');
    expect([count(), here()]).toEqual(['1 of 1', 'loss']);
  });

  test('a link leads to its line, wherever that is, and says so if it is gone', async () => {
    location.hash = '#pods/n/p';
    const from = (link: string): void => setView({ line: link });
    asked.items = Array.from({ length: 3_000 }, (_, n) => ({ ...item(n), time: timeOf(Math.floor(n / 2)) })); // two of each time
    const told = (): (() => string)[] => [() => event('started', { restart: 1 }), ...asked.items.slice(-10).map(({ text, time }) => () => line(text, time))];
    from(`p/main/${timeOf(500)}/1`);
    await open(...told());
    await settle();
    act(() => void scroller().dispatchEvent(new Event('scroll')));
    expect([here(), count()]).toEqual(['line 1001', '']);
    choose('error');
    expect(here()).toBe('');
    act(() => from(`p/main/${timeOf(1_497)}`)); // one of those that are followed
    await settle();
    expect(here()).toBe('line 2994');
    act(() => from('p/main/2026-11-27T08:00:00.5Z'));
    await settle();
    expect(count()).toBe('The line of this link is not in the log any more.');
    act(() => from('p/other/nonsense'));
    await settle();
    expect(count()).toBe('The line of this link is not in the log any more.');
    asked.instead = () => ({ detail: 'too many logs are read' });
    act(() => from(`p/main/${timeOf(900)}`));
    await settle();
    expect(count()).toBe('too many logs are read');
  });

  test('a link leads to its line behind more of the same time than come at once, also into those that are followed', async () => {
    location.hash = '#pods/n/p';
    // Of two containers, as a node that keeps whole seconds tells them.
    asked.items = Array.from({ length: 3_000 }, (_, n) => ({ ...item(n, `line ${n}`, n % 3 === 2 ? 'side' : 'main'), time: timeOf(n < 10 ? 0 : n < 2_995 ? 1 : 2) }));
    const told = asked.items.slice(-10).map(({ text, time, container }) => () => line(text, time, container));
    const before = (place: number): number => asked.items.slice(0, place).filter(({ container, time }) => container === 'main' && time === timeOf(1)).length;
    setView({ line: `p/main/${timeOf(1)}/${before(2_590)}` });
    await open(() => event('started', { restart: 1 }), () => event('started', { restart: 0 }, 'side'), ...told);
    await settle();
    act(() => void scroller().dispatchEvent(new Event('scroll')));
    expect([here(), count()]).toEqual(['line 2590', '']);
    act(() => setView({ line: `p/main/${timeOf(1)}/${before(2_994)}` }));
    await settle();
    act(() => void scroller().dispatchEvent(new Event('scroll')));
    expect([here(), count()]).toEqual(['line 2994', '']);
    act(() => setView({ line: `p/main/${timeOf(1)}/${before(2_996)}` })); // one more than there are
    await settle();
    expect(count()).toBe('The line of this link is not in the log any more.');
  });

  test('a click on the time of a line makes it the address, and moves nothing', async () => {
    location.hash = '#pods/n/p';
    await open(() => event('started', { restart: 0 }), () => line('a', timeOf(1)), () => line('b', timeOf(1)), () => line('c', timeOf(1), 'side'), () => line('d', timeOf(1)));
    const times = page.element.querySelectorAll<HTMLAnchorElement>('.log-line time a');
    expect([...times].map(({ tabIndex }) => tabIndex)).toEqual([-1, -1, -1, -1]);
    const top = scroller().scrollTop;
    page.act(() => times[3]?.click());
    await settle();
    expect(parseView(location.hash).line).toBe(`p/main/${timeOf(1)}/2`);
    expect(times[3]?.href).toContain(location.hash);
    expect([here(), scroller().scrollTop]).toEqual(['d', top]);
    const write = vi.fn(() => Promise.resolve());
    vi.spyOn(navigator, 'clipboard', 'get').mockReturnValue({ writeText: write } as unknown as Clipboard);
    page.act(() => page.button('Copy link').click());
    await settle();
    expect(write).toHaveBeenCalledWith(location.href);
  });
});
