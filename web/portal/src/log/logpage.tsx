// The page of a log in tests, and what a gateway tells it.

import type { Kubecast } from '@kubecast/sdk';
import { KubecastProvider } from '@kubecast/sdk/react';
import { act } from 'react';
import { afterEach, beforeEach, vi } from 'vitest';
import { frame, type ScriptedBody, type ScriptedFetch } from '../../../mock/fetch.ts';
import { eachPage } from '../../../mock/page.ts';
import { render, type Rendered } from '../../../mock/render.ts';
import { pods } from '../job/resources.ts';
import { Log } from './Log.tsx';

let server: ScriptedFetch;
let kc: Kubecast;
export let page: Rendered;
let told: ScriptedBody;
let watch: string;

/** Before each test there is a page to open, and after it nothing of it. */
export function eachLog(): void {
  eachPage((made) => ({ server, kc } = made));
  beforeEach(() => {
    // A document without a layout has no sizes.
    vi.spyOn(HTMLElement.prototype, 'clientHeight', 'get').mockReturnValue(600);
    vi.spyOn(HTMLElement.prototype, 'clientWidth', 'get').mockReturnValue(800);
  });
  afterEach(() => {
    page.unmount();
    localStorage.clear();
    location.hash = '';
    vi.restoreAllMocks();
  });
}

export const pass = (ms = 100): Promise<unknown> => act(() => vi.advanceTimersByTimeAsync(ms));
let said = 0;
export const event = (type: string, more: object, container = 'main'): string => frame(`${watch}.${type}`, `e.${watch}-p${++said}`, { namespace: 'n', pod: 'p', container, ...more });
export const line = (text: string, time = '2026-11-27T10:00:00Z', container = 'main'): string => event('line', { time, text }, container);
export const tell = async (...frames: string[]): Promise<void> => {
  for (const one of frames) told.push(one);
  await pass();
};
export const open = async (...frames: (() => string)[]): Promise<void> => {
  page = render(
    <KubecastProvider client={kc}>
      <Log of={pods} namespace="n" name="p" token={undefined} />
    </KubecastProvider>,
  );
  await pass();
  watch = [...new URL(server.last.url, 'http://x').searchParams].find(([, value]) => value.startsWith('/logs/'))?.[0] ?? '';
  told = server.last.accept(...frames.map((one) => one()), frame(`${watch}.synced`, `e.${watch}-p0`, { lines: 0 }));
  await pass();
};
export const level = (): HTMLSelectElement | null => page.element.querySelector('select[aria-label=Level]');
/** Of lines that are at least so bad. */
export const choose = (least: string): void => {
  const select = level();
  page.act(() => {
    if (select) select.value = least;
    select?.dispatchEvent(new Event('change', { bubbles: true }));
  });
};
export const lines = (): string[] => [...page.element.querySelectorAll('.log-line')].map(({ textContent }) => textContent);
