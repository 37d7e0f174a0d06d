import type { Kubecast } from '@kubecast/sdk';
import { KubecastProvider } from '@kubecast/sdk/react';
import { act } from 'react';
import { afterEach, expect, test, vi } from 'vitest';
import { frame, type ScriptedBody, type ScriptedFetch } from '../../../mock/fetch.ts';
import { eachPage } from '../../../mock/page.ts';
import { render, type Rendered } from '../../../mock/render.ts';
import { DatedByConnection } from '../connection/Dated.tsx';
import { parseView } from '../view/view.ts';
import { OverviewPage } from './OverviewPage.tsx';

let server: ScriptedFetch;
let kc: Kubecast;
let page: Rendered;
eachPage((made) => ({ server, kc } = made));
afterEach(() => page.unmount());

/** In steps: what is to be rendered waits for the end of an `act`. */
const pass = async (ms = 0): Promise<void> => {
  for (let left = ms; left >= 0; left -= 250) await act(() => vi.advanceTimersByTimeAsync(Math.min(left, 250)));
};
const watchesOf = (url: string): [string, string][] => [...new URL(url, 'http://x').searchParams].filter(([name]) => name.startsWith('w'));

test('where no history is kept, what there is now is still said to be old when the stream is lost', async () => {
  page = render(
    <KubecastProvider client={kc}>
      <DatedByConnection>
        <OverviewPage view={parseView('#overview')} />
      </DatedByConnection>
    </KubecastProvider>,
  );
  await pass(20);
  // No history: requests for it are refused, and so is each stream that asks for it.
  const answered = new Set<unknown>();
  let body: ScriptedBody | undefined;
  for (let round = 0; round < 8; round++) {
    for (const request of server.requests.filter((one) => !answered.has(one))) {
      answered.add(request);
      const watches = watchesOf(request.url);
      if (!request.url.startsWith('/stream') || watches.some(([, path]) => path.startsWith('/history'))) {
        // Which watch it was that was refused is asked of each.
        const kept = !request.url.startsWith('/history') && !request.url.startsWith('/stream');
        request.refuse(kept ? 200 : 404, {}, kept ? '{}' : JSON.stringify({ detail: 'no history is kept' }));
      } else {
        const names = watches.map(([name]) => name);
        body = request.accept('retry: 100000\n\n', ...names.map((name, n) => frame(`${name}.synced`, `e.${names.slice(0, n + 1).map((one) => `${one}-1`).join('.')}`, { seq: '1', count: 0 })));
      }
    }
    await pass(250);
  }
  const dated = (): boolean => page.element.querySelector('[data-dated]') !== null;
  expect(page.element.querySelector('.chart-says')).not.toBeNull();
  expect(page.element.querySelectorAll('.tile')).toHaveLength(6);
  expect(dated()).toBe(false);
  body?.end();
  await pass(2_500);
  expect(dated()).toBe(true);
  expect(page.element.querySelector('.dated-why')?.textContent).toMatch(/as of .*cannot be reached|as of .*ended/);
});
