// The panel, as an element of its own that no page's style reaches. What is said is text, never markup.

import type { Kubecast } from '../kubecast.ts';
import type { Devtools, SeenFrame } from './devtools.ts';
import { lasting, type Lasting, type Once } from './faults.ts';
import { redactUrl } from './redact.ts';
import { style } from './style.ts';

const name = 'kubecast-devtools';
/** How often what is shown changes, at most, in milliseconds. */
const pace = 250;

const titles: Record<Lasting | Once, string> = {
  cut: 'All streams break',
  '410': 'All streams break, and their position is too old: reset, and a snapshot',
  delay: 'Each answer, and each part of a stream, comes two seconds later',
  'half-open': 'Streams stay open, and nothing more comes',
  '429': 'The gateway refuses: too many requests',
  stale: "The gateway says that its own watch is lost",
  offline: 'No request gets anywhere',
};

/** The element; `close` is what its button and Escape do. */
export function panelOf(kc: Kubecast, tools: Devtools, close: () => void): HTMLElement {
  // Defined here: where there is no DOM, this module can still be loaded.
  if (!customElements.get(name)) customElements.define(name, class extends HTMLElement {});
  const host = document.createElement(name);
  host.tabIndex = -1;
  host.setAttribute('role', 'region');
  host.setAttribute('aria-label', 'Kubecast devtools');
  const root = host.attachShadow({ mode: 'open' });
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(style);
  root.adoptedStyleSheets = [sheet];

  const status = make('span', 'connection');
  status.setAttribute('role', 'status');
  const faults = make('div');
  faults.setAttribute('role', 'group');
  faults.setAttribute('aria-label', 'Faults');
  const pressed = new Map<Lasting, HTMLButtonElement>();
  for (const fault of ['cut', '410'] as const) faults.append(button(fault, titles[fault], () => tools.inject(fault)));
  for (const fault of lasting) {
    const one = button(fault, titles[fault], () => tools.set(fault, !tools.faults.has(fault)));
    pressed.set(fault, one);
    faults.append(one);
  }
  faults.append(button('wake', 'Look at once how the stream is, as a page does that is shown again', () => kc.wake()), button('Close', 'Close the devtools, without faults (Escape)', close));
  const header = make('header');
  header.append(make('h2', '', 'Kubecast'), status, faults);

  const watches = table('Watches', ['Name', 'Path', 'Status', 'Objects']);
  const streams = table('Streams', ['#', 'Opened', 'Frames', 'Bytes', 'From', 'Position', 'End']);
  const resets = table('Resets', ['Time', 'Stream', 'Watch', 'Cause']);
  const frames = make('div');
  const left = section('Streams and watches');
  left.append(...watches.parts, ...streams.parts, ...resets.parts);
  const right = section('Last frames');
  right.append(make('h3', '', 'Last frames, the newest first'), frames);
  const main = make('main');
  main.append(left, right);
  root.append(header, main);

  const rows = new Map<number, HTMLElement>();
  const show = (): void => {
    const { client, entries } = kc.inside;
    const state = client?.state;
    status.textContent = state ? [state.status, state.reason, state.error?.reason].filter(Boolean).join(': ') : 'nothing is watched';
    status.className = `connection ${state?.status === 'live' ? 'live' : 'lost'}`;
    for (const [fault, one] of pressed) one.setAttribute('aria-pressed', String(tools.faults.has(fault)));
    watches.fill([...entries.values()].map((entry) => [entry.name, redactUrl(new URL(entry.path, 'http://page.invalid'), []), [entry.snapshot.status, entry.snapshot.reason].filter(Boolean).join(': '), String(entry.snapshot.data.length)]), 'None.');
    streams.fill(
      tools.streams.toReversed().map((one) => [`${one.id}`, time(one.at), `${one.frames}`, one.bytes.toLocaleString('en'), one.from || '–', one.position || '–', one.end ?? (one.status === undefined ? 'asked' : 'open')]),
      'None of this page: another tab has the stream, or nothing is watched.',
    );
    resets.fill(tools.resets.toReversed().map((one) => [time(one.at), `${one.stream}`, one.watch || '–', one.reason]), 'None.');
    // Rows stay what they are, so that one that is open, or has the focus, keeps that.
    const present = new Set(tools.frames.map(({ id }) => id));
    for (const [id, row] of rows) {
      if (present.has(id)) continue;
      row.remove();
      rows.delete(id);
    }
    for (const frame of tools.frames) {
      if (rows.has(frame.id)) continue;
      const row = rowOf(frame);
      rows.set(frame.id, row);
      frames.prepend(row);
    }
  };

  let timer: ReturnType<typeof setTimeout> | undefined;
  const soon = (): void => {
    timer ??= setTimeout(() => {
      timer = undefined;
      if (host.isConnected) show();
      else leave.forEach((one) => one());
    }, pace);
  };
  const leave = [tools.subscribe(soon), kc.connection.subscribe(soon)];
  host.addEventListener('keydown', (event) => {
    event.stopPropagation(); // the page's own keys are not meant here
    if (event.key === 'Escape') close();
  });
  show();
  soon();
  return host;
}

function make(tag: string, className = '', text = ''): HTMLElement {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (text) element.textContent = text;
  return element;
}

function button(text: string, title: string, onClick: () => void): HTMLButtonElement {
  const one = make('button', '', text) as HTMLButtonElement;
  one.type = 'button';
  one.title = title;
  one.addEventListener('click', onClick);
  return one;
}

/** Can be scrolled by keys. */
function section(label: string): HTMLElement {
  const one = make('section');
  one.tabIndex = 0;
  one.setAttribute('aria-label', label);
  return one;
}

function table(title: string, columns: readonly string[]) {
  const head = make('tr');
  for (const column of columns) {
    const cell = make('th', '', column);
    cell.setAttribute('scope', 'col');
    head.append(cell);
  }
  const thead = make('thead');
  thead.append(head);
  const body = make('tbody');
  const one = make('table');
  one.setAttribute('aria-label', title);
  one.append(thead, body);
  const none = make('p');
  let filled = '';
  const fill = (rows: readonly (readonly string[])[], empty: string): void => {
    const now = JSON.stringify(rows);
    if (now === filled) return; // whoever marks text in it keeps that
    filled = now;
    one.hidden = rows.length === 0;
    none.textContent = rows.length === 0 ? empty : '';
    body.replaceChildren(
      ...rows.map((cells) => {
        const row = make('tr');
        row.append(...cells.map((text) => make('td', text.length < 14 ? 'short' : 'code', text)));
        return row;
      }),
    );
  };
  return { parts: [make('h3', '', title), one, none], fill };
}

function rowOf(frame: SeenFrame): HTMLElement {
  const row = make('details');
  row.append(make('summary', '', `${time(frame.at)}  #${frame.stream}  ${frame.event}  ${frame.size.toLocaleString('en')} characters`), make('pre', '', `${frame.position}\n${frame.data}`));
  return row;
}

const time = (at: number): string => new Date(at).toISOString().slice(11, 23);
